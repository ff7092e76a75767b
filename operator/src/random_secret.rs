//! Edge (reads). Makes passwords and keys from the system's randomness.

use std::fmt;

/// `N` random bytes as hex digits.
///
/// # Panics
/// When the system provides no randomness, so that no secret can be made.
pub(crate) fn random_hex<const N: usize>() -> String {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).expect("the kernel's random source answers on every Linux since 3.17");
    hex::encode(bytes)
}

/// A password whose debug output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct GeneratedPassword(pub(crate) String);

impl fmt::Debug for GeneratedPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_debug_output_hides_value() {
        let password = GeneratedPassword(random_hex::<16>());
        assert!(!format!("{password:?}").contains(&password.0));
    }

    #[test]
    fn two_random_values_differ() {
        assert_ne!(random_hex::<16>(), random_hex::<16>());
    }
}
