//! Types that records have as text.

/// Conversions to and from `String` by `Display` and `FromStr`, for serde.
macro_rules! as_text {
    ($Type:ident) => {
        impl TryFrom<String> for $Type {
            type Error = <$Type as std::str::FromStr>::Err;

            fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$Type> for String {
            fn from(value: $Type) -> Self {
                value.to_string()
            }
        }
    };
}
pub(crate) use as_text;
