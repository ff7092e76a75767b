//! Pure. Converts Kubernetes quantities of memory to bytes.

/// Bytes of a quantity such as `6Gi`, `6000M`, `1.5Gi` or `6442450944`. `None` for any other text. The API conventions
/// of Kubernetes define the suffixes.
pub fn bytes(quantity: &str) -> Option<u64> {
    let digits_end = quantity.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(quantity.len());
    let (number, suffix) = quantity.split_at(digits_end);
    let (numerator, denominator): (u64, u64) = match suffix {
        "" => (1, 1),
        "m" => (1, 1_000),
        "k" => (1_000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (1_000_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.len() > 9 {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let scaled: u128 = format!("{whole}{fraction}").parse().ok()?;
    u64::try_from(scaled * u128::from(numerator) / u128::from(denominator) / scale).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantity_parses_as_in_kubernetes() {
        assert_eq!(bytes("6Gi"), Some(6 << 30));
        assert_eq!(bytes("1.5Gi"), Some(3 << 29));
        assert_eq!(bytes("512M"), Some(512_000_000));
        assert_eq!(bytes("2000m"), Some(2));
        assert_eq!(bytes("1024"), Some(1_024));
        for wrong in ["", "two", "Gi", "1Xi", "1e3Gi", ".5Gi"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
