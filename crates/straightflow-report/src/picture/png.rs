//! PNG files of eight bits of grey.
//!
//! The crate `png` would bring in another backend of `flate2`, which changes the features of a crate
//! that burn builds as well, so that burn would be built twice. What is left of the format is short.

/// The bytes that every PNG file begins with.
pub const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Eight bits of grey, and the only methods of compression, filters and order that are not optional.
const GREY: [u8; 5] = [8, 0, 0, 0, 0];

/// Each byte of a line is stored less the one above it: enlarged pictures have many equal lines.
const LESS_ABOVE: u8 = 2;

/// A file with these pixels, line by line; there has to be at least one.
pub fn encode(pixels: &[u8], width: usize, height: usize) -> Vec<u8> {
    let mut header = Vec::new();
    for length in [width, height] {
        let length = u32::try_from(length).expect("a picture is small");
        header.extend(length.to_be_bytes());
    }
    header.extend(GREY);

    let mut file = SIGNATURE.to_vec();
    chunk(&mut file, b"IHDR", &header);
    chunk(
        &mut file,
        b"IDAT",
        &fdeflate::compress_to_vec(&filtered(pixels, width)),
    );
    chunk(&mut file, b"IEND", &[]);
    file
}

/// The lines with their filter before each.
fn filtered(pixels: &[u8], width: usize) -> Vec<u8> {
    let mut filtered = Vec::with_capacity(pixels.len() + pixels.len() / width);
    // What is above the first line counts as zero.
    let mut above = vec![0; width];
    for line in pixels.chunks_exact(width) {
        filtered.push(LESS_ABOVE);
        filtered.extend(
            line.iter()
                .zip(&above)
                .map(|(pixel, above)| pixel.wrapping_sub(*above)),
        );
        above.copy_from_slice(line);
    }
    filtered
}

/// Appends a part of the file: its length, its kind, its data, and the checksum of the latter two.
fn chunk(file: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).expect("a picture is small");
    file.extend(length.to_be_bytes());
    let start = file.len();
    file.extend(kind);
    file.extend(data);
    file.extend(crc32fast::hash(&file[start..]).to_be_bytes());
}
