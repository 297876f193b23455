//! The letters that stand for bytes in a vocabulary: printable bytes stand for themselves, the others are moved beyond 255, in order.

/// Whether a byte stands for itself.
const fn is_printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The letter of a byte.
pub(super) fn of_byte(byte: u8) -> char {
    if is_printable(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&byte| !is_printable(byte)).count() as u32;
    char::from_u32(256 + before).expect("256 to 323 are characters")
}

/// The byte of a letter, if it stands for one.
pub(super) fn to_byte(letter: char) -> Option<u8> {
    match u32::from(letter) {
        code @ 0..=255 => Some(code as u8).filter(|&byte| is_printable(byte)),
        code => (0..=255).filter(|&byte| !is_printable(byte)).nth((code - 256) as usize),
    }
}
