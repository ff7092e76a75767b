//! Pure. Selects the server that a command is about.

use crate::output::join;

/// Resolves a server by `games/lobby` or `lobby`, or returns the only one there is.
pub(crate) fn select_server<'n>(names: &[&'n str], wanted: Option<&str>, alternative: &str) -> Result<&'n str, String> {
    let listed = |names: &[&str]| join::or_list(names.iter().copied());
    let Some(wanted) = wanted else {
        return match names {
            [only] => Ok(only),
            several => Err(format!(
                "there are {} servers here, name one with `--server`: {}{alternative}",
                several.len(),
                listed(several)
            )),
        };
    };
    // A server without a namespace may have the short name of another one.
    if let Some(exact) = names.iter().find(|name| **name == wanted) {
        return Ok(exact);
    }
    let has_short_name = |name: &&str| name.rsplit('/').next().is_some_and(|short_name| short_name == wanted);
    let matching: Vec<&str> = names.iter().copied().filter(has_short_name).collect();
    match matching.as_slice() {
        [one] => Ok(one),
        [] => Err(format!("there is no server `{wanted}` here: write `--server` with {}", listed(names))),
        several => Err(format!("`{wanted}` is the name of several servers here: write {}", listed(several))),
    }
}
