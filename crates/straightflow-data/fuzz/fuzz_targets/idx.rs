//! IDX files, plain and gzipped: no bytes may panic, and what is read is written back as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use straightflow_data::idx;

fuzz_target!(|bytes: &[u8]| {
    let gzipped = bytes.starts_with(&[0x1f, 0x8b]);
    if let Ok(images) = idx::decode_images(bytes) {
        let written = idx::encode_images(&images);
        assert!(gzipped || written == bytes);
        assert_eq!(idx::decode_images(&written), Ok(images));
    }
    if let Ok(labels) = idx::decode_labels(bytes) {
        let written = idx::encode_labels(&labels);
        assert!(gzipped || written == bytes);
        assert_eq!(idx::decode_labels(&written), Ok(labels));
    }
});
