//! Pure. Checks `spec.restoreFrom`, the backup for a volume without a world: where it is stored, and whether its claim is mounted.

use agent_api::restore::{LATEST, SeedRequest};
use crds::PaperMCServer;
use kube::ResourceExt;

use super::{CheckedBackup, CheckedServer, Violations};

/// The restore for a volume without a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedRestoreFrom {
    /// The request for the init container.
    pub request: SeedRequest,
    /// `false` once the server has a stable revision. It then mounts no other server's claim, whose deletion would prevent its start.
    first_start: bool,
}

impl CheckedServer {
    /// The same server after a first revision has become stable.
    #[must_use]
    pub fn after_first_start(mut self) -> Self {
        if let Some(restore_from) = &mut self.data.restore_from {
            restore_from.first_start = false;
        }
        self
    }

    /// The request, as long as no server has run, if it is not for the server's own repository.
    pub fn foreign_restore(&self) -> Option<&SeedRequest> {
        let restore_from = self.data.restore_from.as_ref().filter(|restore_from| restore_from.first_start)?;
        Some(&restore_from.request).filter(|request| request.apart || request.server != self.name)
    }

    /// The claim that is mounted only for the backup, beside the claim of the server's own backups.
    pub fn extra_restore_claim(&self) -> Option<&str> {
        let restore_from = self.data.restore_from.as_ref()?;
        (restore_from.request.apart && restore_from.first_start).then_some(restore_from.request.claim.as_str())
    }
}

/// Checks the field. `backup` tells where the server's own backups are stored.
pub(super) fn check_restore_from(
    server: &PaperMCServer,
    backup: Option<&CheckedBackup>,
    violations: &mut Violations,
) -> Option<CheckedRestoreFrom> {
    let restore_from = server.spec.restore_from.as_ref()?;
    // Backup and server name both become parts of a path.
    if !is_backup_reference(&restore_from.backup) {
        violations.add(
            "spec.restoreFrom.backup",
            format_args!(
                "`{}` is not the name of a backup: write `{LATEST}`, or a name such as `20261122T030000Z-1a2b3c4d`",
                restore_from.backup
            ),
        );
    }
    let name = server.name_any();
    let source = restore_from.server.as_ref().unwrap_or(&name);
    if !is_backup_name(source) {
        violations.add("spec.restoreFrom.server", format_args!("`{source}` is not a server name"));
    }
    let backup_claim = backup.and_then(|backup| super::volume_claim(backup, &name));
    let claim = match (&restore_from.claim, &backup_claim) {
        (Some(claim), _) => claim.clone(),
        (None, Some(backup_claim)) if *source == name => backup_claim.clone(),
        (None, Some(_) | None) => super::backup_claim(source),
    };
    let apart = backup_claim.as_ref() != Some(&claim);
    let request = SeedRequest { server: source.clone(), backup: restore_from.backup.clone(), claim, apart };
    Some(CheckedRestoreFrom { request, first_start: true })
}

/// Whether the text is `latest` or has the format of a backup name.
pub fn is_backup_reference(text: &str) -> bool {
    let is_name = text.len() <= 64
        && text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    text == LATEST || is_name
}

fn is_backup_name(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| letter(byte) || byte == b'-' || byte == b'.') && text.bytes().next().is_some_and(letter)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::check;
    use super::*;
    use crate::tests::server;

    fn request(spec: Value) -> SeedRequest {
        check(&server(spec)).unwrap().data.restore_from.unwrap().request
    }

    #[test]
    fn restore_from_finds_claim_of_own_or_other_server() {
        let of = |backup: Value, from: Value| {
            let SeedRequest { server, backup, claim, apart } = request(json!({"backup": backup, "restoreFrom": from}));
            assert_eq!(backup, "latest");
            (server, claim, apart)
        };
        let is = |server: &str, claim: &str, apart: bool| (server.to_owned(), claim.to_owned(), apart);
        let nas = json!({"storage": {"existingClaim": "nas"}});
        assert_eq!(of(json!({}), json!({})), is("lobby", "backup-lobby-0", false));
        assert_eq!(of(nas.clone(), json!({})), is("lobby", "nas", false));
        assert_eq!(of(json!(null), json!({})), is("lobby", "backup-lobby-0", true), "the server takes no backups");
        assert_eq!(of(json!({}), json!({"server": "survival"})), is("survival", "backup-survival-0", true));
        assert_eq!(of(nas.clone(), json!({"server": "survival"})), is("survival", "backup-survival-0", true));
        assert_eq!(of(nas, json!({"server": "survival", "claim": "nas"})), is("survival", "nas", false));
        assert_eq!(of(json!({}), json!({"claim": "old"})), is("lobby", "old", true));
    }

    #[test]
    fn restore_from_rejects_names_outside_repository() {
        for (from, path) in [
            (json!({"backup": "../lobby"}), "spec.restoreFrom.backup"),
            (json!({"backup": "newest"}), "spec.restoreFrom.backup"),
            (json!({"server": "../lobby"}), "spec.restoreFrom.server"),
            (json!({"server": ""}), "spec.restoreFrom.server"),
        ] {
            let violations = check(&server(json!({"restoreFrom": from}))).unwrap_err();
            assert_eq!(
                violations.iter().map(|violation| violation.path.as_str()).collect::<Vec<_>>(),
                [path],
                "{from}"
            );
        }
    }

    #[test]
    fn restore_from_mounts_other_claim_for_first_start_only() {
        let another = check(&server(json!({"backup": {}, "restoreFrom": {"server": "survival"}}))).unwrap();
        assert_eq!(another.extra_restore_claim(), Some("backup-survival-0"));
        assert_eq!(another.after_first_start().extra_restore_claim(), None);
        let checked = check(&server(json!({"backup": {}, "restoreFrom": {}}))).unwrap();
        assert_eq!(checked.extra_restore_claim(), None);
    }
}
