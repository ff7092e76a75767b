//! Pure. Parses the name of a server in the forms that kubectl accepts.

/// The name without its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerName(pub(super) String);

/// Accepted kinds before the `/`: the names in the CRD, and the common word.
const SERVER_KINDS: [&str; 5] = ["server", "servers", "papermcserver", "papermcservers", "pmc"];

/// Suffixes of a fully written kind. The longer one is first, because it ends with the other.
const GROUP_SUFFIXES: [&str; 2] = [".v1alpha1.nightshift.dev", ".nightshift.dev"];

/// Parses `server/lobby` or `lobby`.
pub(super) fn parse(text: &str) -> Result<ServerName, String> {
    let (kind, name) = text.split_once('/').map_or((None, text), |(kind, name)| (Some(kind), name));
    if name.is_empty() {
        return Err("a name is missing: write `server/lobby`".to_owned());
    }
    if name.contains('/') {
        return Err("write `server/lobby`, and the namespace with `-n`".to_owned());
    }
    let Some(kind) = kind else { return Ok(ServerName(name.to_owned())) };
    let written = kind.to_lowercase();
    let without_group = GROUP_SUFFIXES.iter().find_map(|group| written.strip_suffix(group)).unwrap_or(&written);
    if SERVER_KINDS.contains(&without_group) {
        return Ok(ServerName(name.to_owned()));
    }
    Err(match without_group {
        "plugin" | "plugins" => "name a server that has it: write `server/lobby`".to_owned(),
        _ => format!(
            "`{kind}` is not a kind of server: write `server/{name}`, or `server/{name} -n {kind}` if it is the namespace"
        ),
    })
}

/// Like [`parse`], but a namespace may precede the `/`, as answers write it: `games/lobby`.
pub(super) fn parse_with_namespace(text: &str) -> (Option<String>, ServerName) {
    match (parse(text), text.split_once('/')) {
        (Err(_), Some((namespace, name))) => (Some(namespace.to_owned()), ServerName(name.to_owned())),
        (Ok(name), _) => (None, name),
        (Err(_), None) => (None, ServerName(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_name_accepts_kubectl_forms() {
        for text in [
            "lobby",
            "server/lobby",
            "servers/lobby",
            "pmc/lobby",
            "papermcserver/lobby",
            "PaperMCServer/lobby",
            "papermcservers.nightshift.dev/lobby",
            "papermcservers.v1alpha1.nightshift.dev/lobby",
        ] {
            assert_eq!(parse(text), Ok(ServerName("lobby".to_owned())), "{text}");
        }
    }

    #[test]
    fn server_name_prefix_is_namespace_unless_kind() {
        let lobby = ServerName("lobby".to_owned());
        assert_eq!(parse_with_namespace("games/lobby"), (Some("games".to_owned()), lobby.clone()));
        assert_eq!(parse_with_namespace("server/lobby"), (None, lobby.clone()));
        assert_eq!(parse_with_namespace("lobby"), (None, lobby));
    }

    #[test]
    fn server_name_error_shows_correct_form() {
        assert!(parse("games/lobby").unwrap_err().contains("`server/lobby -n games`"));
        assert!(parse("plugin/viaversion").unwrap_err().contains("`server/lobby`"));
        assert!(parse("server/games/lobby").unwrap_err().contains("`-n`"));
        assert!(parse("server/").is_err());
    }
}
