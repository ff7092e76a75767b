//! Pure. Writes a path as text that no name on a volume can confuse.

/// The bytes of a path as a unique text: `%` and bytes that are not printable or not UTF-8 become `%` and two hex digits.
pub(crate) fn escape_path(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter == '%' || letter.is_control() {
                let mut bytes = [0; 4];
                letter.encode_utf8(&mut bytes).bytes().for_each(|byte| push_hex(&mut text, byte));
            } else {
                text.push(letter);
            }
        }
        chunk.invalid().iter().for_each(|byte| push_hex(&mut text, *byte));
    }
    text
}

fn push_hex(text: &mut String, byte: u8) {
    text.push('%');
    text.push_str(&hex::encode_upper([byte]));
}
