//! Pure. Checks `spec.restoreFrom`, the backup for a volume without a world: where it is stored, and whether its claim is mounted.

use crds::PaperMCServer;
use kube::ResourceExt;
use scheduler::protocol::restore::{LATEST, NewVolumeOrder};

use super::{CheckedBackup, CheckedServer, Complaints};

/// The restore for a volume without a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckedRestoreFrom {
    pub(crate) order: NewVolumeOrder,
    /// `false` once the server has a stable revision. It then mounts no other server's claim, whose deletion would prevent its start.
    first_start: bool,
}

impl CheckedServer {
    /// The same server after a first revision has become stable.
    pub(crate) fn past_its_first_start(mut self) -> Self {
        if let Some(wish) = &mut self.restore_from {
            wish.first_start = false;
        }
        self
    }

    /// The claim that is mounted only for the backup, beside the claim of the server's own backups.
    pub(crate) fn mounts_apart(&self) -> Option<&str> {
        let wish = self.restore_from.as_ref()?;
        (wish.order.apart && wish.first_start).then_some(wish.order.claim.as_str())
    }
}

/// Checks the field. `backup` tells where the server's own backups are stored.
pub(super) fn check_restore_from(
    server: &PaperMCServer,
    backup: Option<&CheckedBackup>,
    complaints: &mut Complaints,
) -> Option<CheckedRestoreFrom> {
    let wish = server.spec.restore_from.as_ref()?;
    // Backup and server name both become parts of a path.
    if !is_copy(&wish.copy) {
        complaints.add(
            "spec.restoreFrom.copy",
            format_args!(
                "`{}` is no copy's name: write `{LATEST}`, or a name such as `20261122T030000Z-1a2b3c4d`",
                wish.copy
            ),
        );
    }
    let name = server.name_any();
    let whose = wish.server.as_ref().unwrap_or(&name);
    if !is_name(whose) {
        complaints.add("spec.restoreFrom.server", format_args!("`{whose}` is no name of a server"));
    }
    let of_its_own = format!("backup-{name}-0");
    let own = backup.map(|backup| backup.existing_claim.as_ref().unwrap_or(&of_its_own));
    let claim = match (&wish.claim, own) {
        (Some(claim), _) => claim.clone(),
        (None, Some(own)) if *whose == name => own.clone(),
        (None, Some(_) | None) => format!("backup-{whose}-0"),
    };
    let apart = own != Some(&claim);
    let order = NewVolumeOrder { server: whose.clone(), copy: wish.copy.clone(), claim, apart };
    Some(CheckedRestoreFrom { order, first_start: true })
}

/// Whether the text is `latest` or has the format of a backup name.
pub(crate) fn is_copy(text: &str) -> bool {
    let is_name = text.len() <= 64
        && text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    text == LATEST || is_name
}

fn is_name(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| letter(byte) || byte == b'-' || byte == b'.') && text.bytes().next().is_some_and(letter)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::check;
    use super::super::tests::server;
    use super::*;

    fn order(spec: Value) -> NewVolumeOrder {
        check(&server(spec)).unwrap().restore_from.unwrap().order
    }

    #[test]
    fn restore_from_finds_claim_of_own_or_other_server() {
        let of = |backup: Value, from: Value| {
            let NewVolumeOrder { server, copy, claim, apart } = order(json!({"backup": backup, "restoreFrom": from}));
            assert_eq!(copy, "latest");
            (server, claim, apart)
        };
        let is = |server: &str, claim: &str, apart: bool| (server.to_owned(), claim.to_owned(), apart);
        let nas = json!({"storage": {"existingClaim": "nas"}});
        assert_eq!(of(json!({}), json!({})), is("lobby", "backup-lobby-0", false));
        assert_eq!(of(nas.clone(), json!({})), is("lobby", "nas", false));
        assert_eq!(of(json!(null), json!({})), is("lobby", "backup-lobby-0", true), "no copies of its own are taken");
        assert_eq!(of(json!({}), json!({"server": "survival"})), is("survival", "backup-survival-0", true));
        assert_eq!(of(nas.clone(), json!({"server": "survival"})), is("survival", "backup-survival-0", true));
        assert_eq!(of(nas, json!({"server": "survival", "claim": "nas"})), is("survival", "nas", false));
        assert_eq!(of(json!({}), json!({"claim": "old"})), is("lobby", "old", true));
    }

    #[test]
    fn restore_from_rejects_names_outside_repository() {
        for (from, path) in [
            (json!({"copy": "../lobby"}), "spec.restoreFrom.copy"),
            (json!({"copy": "newest"}), "spec.restoreFrom.copy"),
            (json!({"server": "../lobby"}), "spec.restoreFrom.server"),
            (json!({"server": ""}), "spec.restoreFrom.server"),
        ] {
            let complaints = check(&server(json!({"restoreFrom": from}))).unwrap_err();
            assert_eq!(complaints.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), [path], "{from}");
        }
    }

    #[test]
    fn restore_from_mounts_other_claim_for_first_start_only() {
        let another = check(&server(json!({"backup": {}, "restoreFrom": {"server": "survival"}}))).unwrap();
        assert_eq!(another.mounts_apart(), Some("backup-survival-0"));
        assert_eq!(another.past_its_first_start().mounts_apart(), None);
        let own = check(&server(json!({"backup": {}, "restoreFrom": {}}))).unwrap();
        assert_eq!(own.mounts_apart(), None);
    }
}
