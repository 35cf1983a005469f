//! The readers on arbitrary bytes and on what the writers wrote.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use straightflow_data::{BitImages, FormatError, GreyImages, amat, idx};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory is writable");
    encoder.finish().expect("memory is writable")
}

fn grey_images() -> impl Strategy<Value = GreyImages> {
    (1usize..6, 1usize..6, 1usize..5).prop_flat_map(|(height, width, count)| {
        let pixels = prop::collection::vec(any::<u8>(), count * height * width);
        pixels.prop_map(move |pixels| GreyImages::new(height, width, pixels))
    })
}

/// Bytes that often get past the first checks: a good beginning, then anything.
fn nearly_idx() -> impl Strategy<Value = Vec<u8>> {
    let magic = prop_oneof![Just([0u8, 0, 8, 1]), Just([0, 0, 8, 3]), any::<[u8; 4]>()];
    let dimension = prop_oneof![0u32..5, any::<u32>()];
    let dimensions = prop::collection::vec(dimension, 0..4);
    let rest = prop::collection::vec(any::<u8>(), 0..80);
    (magic, dimensions, rest).prop_map(|(magic, dimensions, rest)| {
        let dimensions: Vec<u8> = dimensions.into_iter().flat_map(u32::to_be_bytes).collect();
        [magic.to_vec(), dimensions, rest].concat()
    })
}

/// Text made of what `.amat` files are made of, and of what they are not.
fn nearly_amat() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"0",
        b"1",
        b" ",
        b"\n",
        b"\r\n",
        b"\t",
        b"1.0",
        b"0.000000e+00",
        b"2",
        b"-",
        b"\xff",
        b"e",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn images_survive_a_round_trip(images in grey_images()) {
        let file = idx::encode_images(&images);
        prop_assert_eq!(idx::decode_images(&file), Ok(images.clone()));
        prop_assert_eq!(idx::decode_images(&gzip(&file)), Ok(images));
    }

    #[test]
    fn labels_survive_a_round_trip(labels in prop::collection::vec(any::<u8>(), 1..200)) {
        let file = idx::encode_labels(&labels);
        prop_assert_eq!(idx::decode_labels(&file), Ok(labels.clone()));
        prop_assert_eq!(idx::decode_labels(&gzip(&file)), Ok(labels));
    }

    #[test]
    fn binary_images_survive_a_round_trip(images in grey_images(), limit: u8) {
        let bits = images.threshold(limit);
        let text = amat::encode(&bits);
        let decode = |text: &[u8]| amat::decode(text, bits.height(), bits.width());
        prop_assert_eq!(decode(&text), Ok(bits.clone()));
        prop_assert_eq!(decode(&gzip(&text)), Ok(bits.clone()));
        let floats = String::from_utf8(text).expect("text").replace('1', "1.000000e+00");
        prop_assert_eq!(decode(floats.as_bytes()), Ok(bits.clone()));
    }

    #[test]
    fn what_is_read_as_images_is_what_they_are_written_as(bytes in nearly_idx()) {
        if let Ok(images) = idx::decode_images(&bytes) {
            prop_assert_eq!(idx::encode_images(&images), bytes.clone());
        }
        if let Ok(labels) = idx::decode_labels(&bytes) {
            prop_assert_eq!(idx::encode_labels(&labels), bytes.clone());
        }
        // Packed or not, the same bytes get the same answer.
        prop_assert_eq!(idx::decode_images(&gzip(&bytes)), idx::decode_images(&bytes));
    }

    #[test]
    fn a_cut_gzip_file_is_an_error(images in grey_images(), cut in 1usize..40) {
        let file = gzip(&idx::encode_images(&images));
        // Only the first bytes tell that it is a gzip file at all.
        let end = file.len().saturating_sub(cut).max(2);
        let error = idx::decode_images(&file[..end]);
        prop_assert!(matches!(error, Err(FormatError::Gzip { .. })), "{error:?}");
    }

    #[test]
    fn a_damaged_gzip_file_is_never_other_images(images in grey_images(), place: usize, bit in 0u32..8) {
        let mut file = gzip(&idx::encode_images(&images));
        let place = place % file.len();
        file[place] ^= 1 << bit;
        if let Ok(read) = idx::decode_images(&file) {
            prop_assert_eq!(read, images);
        }
    }

    #[test]
    fn any_text_is_images_or_an_error(text in nearly_amat(), width in 1usize..4) {
        if let Ok(images) = amat::decode(&text, 1, width) {
            let numbers = text.split(u8::is_ascii_whitespace).filter(|t| !t.is_empty()).count();
            prop_assert_eq!(numbers, images.len() * width);
            prop_assert_eq!(amat::decode(&amat::encode(&images), 1, width), Ok(images));
        }
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..300), gzipped: bool
    ) {
        let mut bytes = bytes;
        if gzipped && bytes.len() > 4 {
            bytes[..4].copy_from_slice(&[0x1f, 0x8b, 8, 0]);
        }
        let images: Result<GreyImages, FormatError> = idx::decode_images(&bytes);
        let text: Result<BitImages, FormatError> = amat::decode(&bytes, 28, 28);
        // No error is without a sentence.
        for error in [images.err(), text.err(), idx::decode_labels(&bytes).err()] {
            prop_assert!(error.is_none_or(|e| !e.to_string().is_empty()));
        }
    }
}
