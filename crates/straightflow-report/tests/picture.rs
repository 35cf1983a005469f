//! Pictures, read back by other code than that which wrote them.

use std::io::Read;

use flate2::read::ZlibDecoder;
use straightflow_report::picture::{Picture, PictureError};

/// The grey between images.
const BETWEEN: u8 = 0x70;

/// A decoded file, line by line.
fn decode(file: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = file.strip_prefix(b"\x89PNG\r\n\x1a\n").expect("a PNG file");
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        let number = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().expect("4 bytes"));
        let length = number(0) as usize;
        let mut checksum = flate2::Crc::new();
        checksum.update(&rest[4..8 + length]);
        assert_eq!(number(8 + length), checksum.sum());
        chunks.push((rest[4..8].to_vec(), rest[8..8 + length].to_vec()));
        rest = &rest[12 + length..];
    }
    let kinds: Vec<&[u8]> = chunks.iter().map(|(kind, _)| kind.as_slice()).collect();
    assert_eq!(kinds, [b"IHDR", b"IDAT", b"IEND"]);

    let header = &chunks[0].1;
    let number = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("4 bytes"));
    let (width, height) = (number(0) as usize, number(4) as usize);
    assert_eq!(header[8..], [8, 0, 0, 0, 0], "eight bits of grey");

    let mut data = Vec::new();
    let mut decoder = ZlibDecoder::new(chunks[1].1.as_slice());
    decoder.read_to_end(&mut data).expect("compressed lines");
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for line in data.chunks(width + 1) {
        let above = lines.last().cloned().unwrap_or_else(|| vec![0; width]);
        let pixel = |(byte, above): (&u8, &u8)| match line[0] {
            0 => *byte,
            2 => byte.wrapping_add(*above),
            filter => panic!("filter {filter}"),
        };
        let pixels: Vec<u8> = line[1..].iter().zip(&above).map(pixel).collect();
        assert_eq!(pixels.len(), width);
        lines.push(pixels);
    }
    assert_eq!(lines.len(), height);
    lines
}

fn picture(height: usize, width: usize, rows: &[&[f32]]) -> Picture {
    let mut picture = Picture::new(height, width).expect("a size");
    for row in rows {
        picture.push_row(row).expect("whole images");
    }
    picture
}

#[test]
fn images_stand_in_rows_with_gaps_between_them() {
    let second = [0.2, 0.4];
    let picture = picture(1, 2, &[&[0.0, 1.0, 0.5, 0.25], &second]);
    let lines = decode(&picture.png(1).expect("a file"));
    assert_eq!(
        lines,
        [
            [0, 255, BETWEEN, 128, 64],
            [BETWEEN; 5],
            // The second row is an image short.
            [51, 102, BETWEEN, BETWEEN, BETWEEN],
        ]
    );
}

#[test]
fn an_image_is_read_line_by_line() {
    let image: Vec<f32> = (0..6).map(|i| i as f32 / 255.0).collect();
    let lines = decode(&picture(3, 2, &[&image]).png(1).expect("a file"));
    assert_eq!(lines, [[0, 1], [2, 3], [4, 5]]);
}

#[test]
fn pixels_become_squares() {
    let images: Vec<f32> = (0..24).map(|i| i as f32 / 23.0).collect();
    let picture = picture(2, 3, &[&images[..12], &images[12..]]);
    let small = decode(&picture.png(1).expect("a file"));
    let large = decode(&picture.png(3).expect("a file"));
    assert_eq!((small.len(), small[0].len()), (5, 7));
    assert_eq!((large.len(), large[0].len()), (15, 21));
    for (y, line) in large.iter().enumerate() {
        for (x, pixel) in line.iter().enumerate() {
            assert_eq!(*pixel, small[y / 3][x / 3]);
        }
    }
}

#[test]
fn intensities_out_of_range_are_taken_into_it() {
    let row = [
        f32::NAN,
        -0.5,
        f32::NEG_INFINITY,
        1.5,
        f32::INFINITY,
        -f32::NAN,
    ];
    let lines = decode(&picture(1, 6, &[&row]).png(1).expect("a file"));
    assert_eq!(lines, [[0, 0, 0, 255, 255, 0]]);
}

#[test]
fn the_same_images_give_the_same_small_file() {
    let ring = |i: usize| {
        let (x, y) = ((i % 28) as f32 - 13.5, (i / 28 % 28) as f32 - 13.5);
        1.0 - (x.hypot(1.4 * y) - 8.0).abs() / 2.0
    };
    let images: Vec<f32> = (0..10 * 784).map(ring).collect();
    let picture = picture(28, 28, &[&images, &images]);
    let file = picture.png(2).expect("a file");
    assert_eq!(file, picture.clone().png(2).expect("a file"));
    let lines = decode(&file);
    assert_eq!((lines.len(), lines[0].len()), (2 * 57, 2 * 289));
    assert!(file.len() < 20_000, "{} bytes", file.len());
}

#[test]
fn what_is_no_picture_is_refused() {
    for (height, width) in [(0, 3), (3, 0)] {
        let error = Picture::new(height, width).expect_err("no pixels");
        assert_eq!(error, PictureError::NoPixels { height, width });
    }
    let mut empty = Picture::new(2, 2).expect("a size");
    assert_eq!(empty.png(1), Err(PictureError::NoRows));
    for length in [0, 3, 5] {
        let error = empty.push_row(&vec![0.5; length]).expect_err("a part");
        let (height, width) = (2, 2);
        assert_eq!(
            error,
            PictureError::PartOfAnImage {
                length,
                height,
                width
            }
        );
    }
    assert_eq!(empty.png(1), Err(PictureError::NoRows));
    let picture = picture(2, 2, &[&[0.5; 8]]);
    assert_eq!(picture.png(0), Err(PictureError::NoScale));
    for scale in [10_000, usize::MAX / 4, usize::MAX] {
        let error = picture.png(scale).expect_err("too large");
        assert!(matches!(
            error,
            PictureError::TooLarge {
                columns: 2,
                rows: 1,
                ..
            }
        ));
    }
    let huge = Picture::new(usize::MAX, 2).map(|mut picture| picture.push_row(&[0.0; 4]));
    assert!(matches!(huge, Ok(Err(PictureError::PartOfAnImage { .. }))));
}
