//! Files as bytes, unpacked if they are gzipped, and never more of them than can be good.

use std::borrow::Cow;
use std::io::{ErrorKind, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::error::{Error, FormatError, Result};

/// The largest file that is read, unpacked: twice the largest set of the family (EMNIST ByClass).
pub(crate) const LIMIT: u64 = 1 << 30;

/// The bytes of a file as they are on disk.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let size = std::fs::metadata(path)
        .map_err(|e| Error::unreadable(path, e))?
        .len();
    if size > LIMIT {
        return Err(Error::format(path, FormatError::TooLarge { limit: LIMIT }));
    }
    std::fs::read(path).map_err(|e| Error::unreadable(path, e))
}

/// Whether the bytes are gzipped. The contents decide, because names lie.
pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// The first `limit` bytes of what `bytes` hold, unpacked if they are gzipped.
///
/// Memory grows with what is really there, so a header that lies cannot make it large.
pub(crate) fn prefix(bytes: &[u8], limit: u64) -> Result<Cow<'_, [u8]>, FormatError> {
    if !is_gzip(bytes) {
        let end = usize::try_from(limit).map_or(bytes.len(), |limit| limit.min(bytes.len()));
        return Ok(Cow::Borrowed(&bytes[..end]));
    }
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(bytes)
        .take(limit)
        .read_to_end(&mut unpacked)
        .map_err(|e| FormatError::Gzip {
            reason: match e.kind() {
                ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
                _ => e.to_string(),
            },
        })?;
    Ok(Cow::Owned(unpacked))
}

/// All that `bytes` hold, unpacked if they are gzipped.
pub(crate) fn whole(bytes: &[u8]) -> Result<Cow<'_, [u8]>, FormatError> {
    let unpacked = prefix(bytes, LIMIT + 1)?;
    if unpacked.len() as u64 > LIMIT {
        return Err(FormatError::TooLarge { limit: LIMIT });
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("memory is writable");
        encoder.finish().expect("memory is writable")
    }

    #[test]
    fn a_prefix_of_a_bomb_stays_small() {
        let bomb = gzip(&vec![0; 10_000_000]);
        assert!(bomb.len() < 20_000);
        assert_eq!(prefix(&bomb, 100).unwrap().len(), 100);
    }

    #[test]
    fn bytes_after_the_gzip_stream_are_an_error() {
        let mut packed = gzip(b"content");
        assert_eq!(whole(&packed).unwrap().as_ref(), b"content");
        packed.extend(b"more");
        assert!(matches!(whole(&packed), Err(FormatError::Gzip { .. })));
    }
}
