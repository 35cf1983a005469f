//! `.amat` files: no bytes may panic, and what is written is read back. The first byte chooses the
//! size of the images, so that short inputs get past the check of the length of a line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use straightflow_data::amat;

fuzz_target!(|bytes: &[u8]| {
    let Some((&size, text)) = bytes.split_first() else {
        return;
    };
    let (height, width) = (1 + usize::from(size % 3), 1 + usize::from(size / 64));
    if let Ok(images) = amat::decode(text, height, width) {
        let written = amat::encode(&images);
        assert_eq!(amat::decode(&written, height, width), Ok(images));
    }
});
