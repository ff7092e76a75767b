//! Pure. Matches patterns over Minecraft versions, as in `compatibilityOverride`.

use crate::model::version::Minecraft;

/// Whether `pattern` matches `version`: an exact version, `1.21.x` (also `1.21.*`), or `*`.
///
/// `1.21.x` means 1.21 itself and every 1.21.n. It never means 1.210 or a snapshot.
pub fn matches(pattern: &str, version: &Minecraft) -> bool {
    let pattern = pattern.trim();
    if matches!(pattern, "*" | "x") {
        return version.is_release();
    }
    let Some(line) = pattern.strip_suffix(".x").or_else(|| pattern.strip_suffix(".*")) else {
        return pattern.parse::<Minecraft>().is_ok_and(|exact| exact == *version);
    };
    let (Some(parts), true) = (version.parts(), version.is_release()) else { return false };
    let wanted: Option<Vec<u16>> = line.split('.').map(|part| part.parse().ok()).collect();
    wanted.is_some_and(|wanted| !wanted.is_empty() && wanted.len() <= 2 && parts.starts_with(&wanted))
}
