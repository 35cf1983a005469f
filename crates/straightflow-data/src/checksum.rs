//! SHA-256 as text.

use sha2::{Digest, Sha256};

/// The lower-case hexadecimal SHA-256 checksum of bytes.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The empty message and "abc", of FIPS 180-2 and NIST's examples.
    #[test]
    fn checksums_are_sha256() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!([sha256(b"abc"), sha256(b"")], [abc, empty]);
    }
}
