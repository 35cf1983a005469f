//! PNG files as parts of a page.

use std::path::Path;

use data_encoding::BASE64;

use super::ReportError;
use crate::picture::SIGNATURE;

/// The largest file, in bytes. The page holds four thirds of it.
pub const MAX_BYTES: u64 = 4 << 20;

/// Where the width and the height stand, after the signature and the length and kind of the header.
const WIDTH_AT: usize = SIGNATURE.len() + 8;

/// Beyond this a browser would spend hundreds of megabytes on a small file.
const MAX_PIXELS: u64 = 1 << 26;

/// A picture to be put into a page.
pub struct Image {
    /// The name of its file.
    pub file: String,
    pub caption: String,
    /// What is to be seen, for those who cannot see it.
    pub alt: String,
    /// The file in base64.
    pub data: String,
    pub width: u32,
    pub height: u32,
    /// The model, for reconstructions: images in the upper half, what became of them in the lower.
    pub model: Option<String>,
}

/// Reconstructions of several methods that belong in one grid, and the pictures that stand alone. A grid
/// has the pictures of one width whose models begin with the same word.
pub fn grids(images: &[Image]) -> (Vec<Vec<&Image>>, Vec<&Image>) {
    let kind = |image: &Image| {
        let kind = image.kind()?.to_owned();
        Some((kind, image.width, image.height))
    };
    let mut grids: Vec<Vec<&Image>> = Vec::new();
    let mut single = Vec::new();
    for image in images {
        let known = grids.iter_mut().find(|grid| kind(grid[0]) == kind(image));
        match (kind(image), known) {
            (Some(_), Some(grid)) => grid.push(image),
            (Some(_), None) => grids.push(vec![image]),
            (None, _) => single.push(image),
        }
    }
    (grids, single)
}

impl Image {
    /// The networks of the model, which its name begins with.
    pub fn kind(&self) -> Option<&str> {
        let model = self.model.as_deref()?;
        // Two words for `two-layer` and `four-layer`, one for the others.
        let words = 1 + usize::from(model.starts_with("two-") || model.starts_with("four-"));
        let mut ends = model.match_indices('-').map(|(at, _)| at);
        Some(ends.nth(words - 1).map_or(model, |end| &model[..end]))
    }

    /// Whose reconstructions they are.
    pub fn method(&self) -> String {
        let name = self.model.as_deref().unwrap_or(&self.file);
        let kind = self.kind().unwrap_or_default();
        let method = name.strip_prefix(kind).unwrap_or(name);
        let method = method.trim_start_matches('-').trim_end_matches('_');
        // What stands for the colon of a specification in the name of a file.
        let method = method.replace('_', ", ");
        if method.is_empty() {
            name.to_owned()
        } else {
            method
        }
    }

    /// Takes a file that is a PNG of a size that a page can hold.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, ReportError> {
        let unexpected = |reason: String| ReportError::Unexpected {
            path: path.to_owned(),
            reason,
        };
        if bytes.len() as u64 > MAX_BYTES {
            return Err(unexpected(too_large()));
        }
        let (width, height) =
            size(bytes).ok_or_else(|| unexpected("it is not a PNG file".to_owned()))?;
        if u64::from(width) * u64::from(height) > MAX_PIXELS {
            return Err(unexpected(format!(
                "{width} by {height} pixels are too many for a report"
            )));
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let (caption, alt) = description(&stem);
        Ok(Self {
            file: file.into_owned(),
            caption,
            alt,
            data: BASE64.encode(bytes),
            width,
            height,
            model: stem.strip_suffix("-reconstructions").map(str::to_owned),
        })
    }
}

/// Why a file of more than [`MAX_BYTES`] is refused.
pub fn too_large() -> String {
    format!(
        "a report takes no pictures of more than {} MiB",
        MAX_BYTES >> 20
    )
}

/// Width and height, if the file begins as a PNG file does.
fn size(bytes: &[u8]) -> Option<(u32, u32)> {
    let header = bytes.strip_prefix(&SIGNATURE)?.get(4..8)?;
    let number = |at: usize| {
        let number = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(number)).filter(|number| *number > 0)
    };
    let size = (number(WIDTH_AT)?, number(WIDTH_AT + 4)?);
    (header == b"IHDR").then_some(size)
}

/// The caption, and what is to be seen.
fn description(stem: &str) -> (String, String) {
    const RECONSTRUCTIONS: (&str, &str) = (
        "Images above, their reconstructions below.",
        "small greyscale images in rows, and below each its reconstruction",
    );
    if let Some(of) = stem.strip_suffix("-reconstructions") {
        let (caption, alt) = RECONSTRUCTIONS;
        return (format!("{of}. {caption}"), format!("{of}: {alt}"));
    }
    let (caption, alt) = match stem {
        "reconstructions" => RECONSTRUCTIONS,
        "prior" => (
            "Samples of the prior.",
            "a grid of small greyscale images, each made from a sample of the prior",
        ),
        other => return (other.to_owned(), format!("the picture {other}")),
    };
    (caption.to_owned(), alt.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Picture;

    fn file() -> Vec<u8> {
        let mut picture = Picture::new(2, 3).expect("a size");
        picture.push_row(&[0.5; 12]).expect("two images");
        picture.png(2).expect("a file")
    }

    fn refused(bytes: &[u8]) -> String {
        match Image::parse(Path::new("run/prior.png"), bytes) {
            Err(error @ ReportError::Unexpected { .. }) => error.to_string(),
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("{} bytes were taken", bytes.len()),
        }
    }

    #[test]
    fn reconstructions_say_whose_they_are() {
        let path = Path::new("run/linear-arm-reconstructions.png");
        let image = Image::parse(path, &file()).expect("an image");
        let expected = "linear-arm. Images above, their reconstructions below.";
        assert_eq!(image.caption, expected);
    }

    #[test]
    fn reconstructions_of_one_model_share_a_grid() {
        let names = ["linear-arm", "linear-relax", "two-layer-arm"];
        let mut images: Vec<Image> = names
            .map(|name| format!("{name}-reconstructions.png"))
            .iter()
            .map(|name| Image::parse(Path::new(name), &file()).expect("an image"))
            .collect();
        images.push(Image::parse(Path::new("prior.png"), &file()).expect("an image"));
        assert_eq!(images[0].method(), "arm");
        assert_eq!(
            (images[2].kind(), images[2].method()),
            (Some("two-layer"), "arm".to_owned())
        );
        let (grids, single) = grids(&images);
        let sizes: Vec<usize> = grids.iter().map(Vec::len).collect();
        assert_eq!((sizes, single.len()), (vec![2, 1], 1));
    }

    #[test]
    fn an_image_has_its_size_and_its_bytes() {
        let image = Image::parse(Path::new("run/prior.png"), &file()).expect("an image");
        assert_eq!((image.width, image.height), (14, 4));
        assert_eq!(BASE64.decode(image.data.as_bytes()), Ok(file()));
        assert_eq!(image.file, "prior.png");
        assert_eq!(image.caption, "Samples of the prior.");
    }

    #[test]
    fn captions_follow_the_names() {
        let caption = |name: &str| {
            let image = Image::parse(Path::new(name), &file()).expect("an image");
            assert!(!image.alt.is_empty());
            image.caption
        };
        assert!(caption("reconstructions.png").contains("reconstructions below"));
        assert_eq!(caption("first-layer.png"), "first-layer");
    }

    #[test]
    fn what_is_no_picture_for_a_page_is_refused() {
        let whole = file();
        for length in [0, 7, 8, 20, 23] {
            let message = refused(&whole[..length]);
            assert_eq!(message, "run/prior.png: it is not a PNG file");
        }
        refused(b"GIF89a, which browsers would show as well");
        let changed = |at: usize, value: &[u8]| {
            let mut bytes = whole.clone();
            bytes[at..at + value.len()].copy_from_slice(value);
            refused(&bytes)
        };
        assert!(changed(12, b"IDAT").contains("not a PNG"));
        assert!(changed(WIDTH_AT, &[0; 4]).contains("not a PNG"));
        assert!(changed(WIDTH_AT, &[0xff; 8]).contains("too many"));
        let mut large = whole.clone();
        large.resize(MAX_BYTES as usize + 1, 0);
        assert!(refused(&large).contains("more than 4 MiB"));
    }
}
