//! Pure. Converts the server state between the status and the request: the operator stores the state that it solved
//! with, and the `resolver` command uses the same state.

use crds::paper_mc_server::{AnswerBasis, DelistedFileStatus, DelistedReleaseStatus, Eula};
use crds::{PaperMCServer, Plugin};

use super::{Violation, request};
use resolver::model::catalog::{Artifact, ProjectKey, Source};
use resolver::model::request::{DelistedRelease, Request, Running, RunningEvidence, RunningVersion};
use resolver::model::software::Software;
use resolver::model::version::Minecraft;

/// The limits of the status for releases and their ids.
const MAX_RELEASES: usize = 200;
const MAX_ID_LENGTH: usize = 80;
/// The limits of the status for projects.
const MAX_UNREQUESTED: usize = 60;
const MAX_PROJECT_LENGTH: usize = 128;
/// The limits of the status for versions.
const MAX_VERSIONS: usize = 200;
const MAX_VERSION_LENGTH: usize = 192;
/// The limits of the status for delisted releases, and for the files and dependencies of each.
const MAX_DELISTED: usize = 4;
const MAX_FILES: usize = 4;
const MAX_NEEDS: usize = 8;

/// The known state of a server beyond its specs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerState {
    /// The newest Minecraft version that opened its world.
    pub floor: Option<Minecraft>,
    /// The running versions according to the last verified lock.
    pub running: Option<Running>,
    /// The image of servers without an own image, if the operator is configured with one. `None` if it is chosen by
    /// Java version.
    pub image: Option<String>,
}

impl ServerState {
    /// Reads the state from the status. A status from an older operator contains only the version. Parts from a newer
    /// operator that cannot be read count as unknown.
    pub fn from_status(server: &PaperMCServer) -> Self {
        let Some(status) = &server.status else { return Self::default() };
        let minecraft = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
        let Some(AnswerBasis {
            floor,
            version,
            build,
            releases,
            unasked,
            versions,
            lost: delisted,
            running_image,
            java,
            image,
        }) = &status.basis
        else {
            return Self { floor: minecraft(&status.current_version), ..Self::default() };
        };
        let running = minecraft(version).zip(*build).map(|(minecraft, build)| Running {
            // The operator writes the status, and it only runs Paper.
            software: Software::Paper,
            build,
            releases: releases.clone(),
            unrequested: unasked.iter().filter_map(|key| ProjectKey::parse_site(key)).collect(),
            versions: versions.iter().filter_map(|text| running_version(text)).collect(),
            delisted: delisted.iter().filter_map(|delisted| delisted_from_status(delisted, &minecraft)).collect(),
            image: running_image.clone(),
            java: *java,
            since: None,
            minecraft,
        });
        Self { floor: minecraft(floor), running, image: image.clone() }
    }

    /// The state for the status. `None` if it is empty.
    pub fn basis(&self) -> Option<AnswerBasis> {
        let Self { floor, running, image } = self;
        let mut basis = AnswerBasis {
            floor: floor.as_ref().map(ToString::to_string),
            image: image.clone(),
            ..AnswerBasis::default()
        };
        if let Some(running) = running {
            let Running {
                software: _,
                minecraft,
                build,
                releases,
                unrequested,
                versions,
                delisted,
                image,
                java,
                since: _,
            } = running;
            basis.version = Some(minecraft.to_string());
            basis.build = Some(*build);
            basis.running_image.clone_from(image);
            basis.java = *java;
            basis.releases.clone_from(releases);
            // Sorted, so that a different order in a lock does not change the status.
            basis.releases.sort();
            // A truncated id would be another one. With values that do not fit, the status could not be written at all.
            basis.releases.retain(|id| fits(id, MAX_ID_LENGTH));
            basis.releases.truncate(MAX_RELEASES);
            basis.unasked = unrequested.iter().map(ToString::to_string).collect();
            basis.unasked.sort();
            basis.unasked.retain(|project| fits(project, MAX_PROJECT_LENGTH));
            basis.unasked.truncate(MAX_UNREQUESTED);
            basis.versions = versions.iter().map(|runs| format!("{} {}", runs.project, runs.version)).collect();
            basis.versions.retain(|text| fits(text, MAX_VERSION_LENGTH));
            basis.versions.sort();
            basis.versions.truncate(MAX_VERSIONS);
            basis.lost = delisted.iter().filter_map(delisted_to_status).collect();
            basis.lost.sort();
            basis.lost.truncate(MAX_DELISTED);
        }
        (basis != AnswerBasis::default()).then_some(basis)
    }

    /// The request of the server, with its state.
    ///
    /// # Errors
    /// As [`request`].
    pub fn build_request<'a>(
        &self,
        server: &PaperMCServer,
        plugins: impl IntoIterator<Item = &'a Plugin>,
    ) -> Result<Request, Vec<Violation>> {
        let mut request = request(server, plugins, self.floor.clone(), self.running.clone())?;
        if request.image.is_none() {
            request.image.clone_from(&self.image);
            request.image_is_given = self.image.is_some();
        }
        Ok(request)
    }
}

/// Parses a running plugin in the status: `modrinth/vault 1.7.3`.
fn running_version(text: &str) -> Option<RunningVersion> {
    let (project, version) = text.split_once(' ')?;
    Some(RunningVersion { project: ProjectKey::parse_site(project)?, version: version.to_owned() })
}

/// Parses a delisted release in the status.
fn delisted_from_status(delisted: &DelistedReleaseStatus, minecraft: &Minecraft) -> Option<DelistedRelease> {
    let DelistedReleaseStatus { project, project_id, name, release, version, java, needs, files } = delisted;
    let files = files.iter().map(|DelistedFileStatus { name, url, size, hash }| Artifact {
        name: name.clone(),
        url: url.clone(),
        size: size.and_then(|size| size.try_into().ok()),
        hash: Some(hash.clone()),
    });
    let delisted = DelistedRelease::new(
        ProjectKey::parse_site(project)?,
        (release.clone(), version.clone()),
        RunningEvidence { software: Software::Paper, minecraft, java: *java },
        needs.iter().cloned(),
        files,
    )?;
    Some(DelistedRelease { project_id: project_id.clone(), name: name.clone(), ..delisted })
}

/// Converts a delisted release of a site for the status. `None` if it would not fit, which means unknown.
fn delisted_to_status(delisted: &DelistedRelease) -> Option<DelistedReleaseStatus> {
    let DelistedRelease { project, project_id, name, release } = delisted;
    if project.source == Source::Url {
        // Its URL may have a token.
        return None;
    }
    let delisted = DelistedReleaseStatus {
        project: project.to_string(),
        project_id: project_id.clone(),
        name: name.clone(),
        release: release.id.clone(),
        version: release.version.clone(),
        java: release.java,
        needs: release.dependencies.iter().filter_map(|needs| needs.project_id.clone()).collect(),
        files: release
            .files()
            .map(|file| DelistedFileStatus {
                name: file.name.clone(),
                url: file.url.clone(),
                size: file.size.and_then(|size| size.try_into().ok()),
                hash: file.hash.clone().unwrap_or_default(),
            })
            .collect(),
    };
    let file_fits = |file: &DelistedFileStatus| fits(&file.name, 253) && fits(&file.url, 384) && fits(&file.hash, 144);
    let fits_status = fits(&delisted.project, MAX_PROJECT_LENGTH)
        && [&delisted.project_id, &delisted.name].into_iter().flatten().all(|text| fits(text, MAX_PROJECT_LENGTH))
        && fits(&delisted.release, MAX_ID_LENGTH)
        && fits(&delisted.version, MAX_VERSION_LENGTH)
        && delisted.needs.len() <= MAX_NEEDS
        && delisted.needs.iter().all(|needs| fits(needs, MAX_PROJECT_LENGTH))
        && delisted.files.len() <= MAX_FILES
        && delisted.files.iter().all(file_fits);
    fits_status.then_some(delisted)
}

fn fits(text: &str, longest: usize) -> bool {
    text.chars().count() <= longest
}

/// Whether a server of a cluster affects the others that share a plugin with it. A server that is being deleted, or
/// that may not be started, does not.
pub fn takes_part_in_group(server: &PaperMCServer) -> bool {
    server.metadata.deletion_timestamp.is_none() && server.spec.eula == Some(Eula::Accepted)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use resolver::model::catalog::Source;

    fn server(status: &Value) -> PaperMCServer {
        serde_json::from_value(json!({
            "metadata": {"name": "lobby", "namespace": "games"},
            "spec": {"eula": "Accepted", "updateStrategy": "auto"},
            "status": status,
        }))
        .unwrap()
    }

    fn vault() -> DelistedRelease {
        let file = Artifact {
            name: "vault-1.7.3.jar".to_owned(),
            url: "https://cdn.example/vault-1.7.3.jar".to_owned(),
            size: Some(4711),
            hash: Some(format!("sha512:{:0>128}", "a")),
        };
        let minecraft = "1.21.10".parse().unwrap();
        DelistedRelease::new(
            ProjectKey { source: Source::Modrinth, project: "vault".to_owned() },
            ("aaa".to_owned(), "1.7.3 (build 131)".to_owned()),
            RunningEvidence { software: Software::Paper, minecraft: &minecraft, java: Some(21) },
            ["id-of-economy".to_owned()],
            [file],
        )
        .expect("the release has a file")
    }

    #[test]
    fn status_omits_overlong_delisted_release_instead_of_cutting() {
        let mut delisted = vault();
        delisted.release.file.as_mut().unwrap().url = "x".repeat(2049);
        assert_eq!(delisted_to_status(&delisted), None);
        let of_other_project = DelistedRelease { project_id: Some("P1OZGk5p".to_owned()), ..vault() };
        let unread = DelistedRelease { name: Some("Vault".to_owned()), ..of_other_project.clone() };
        for whole in [vault(), of_other_project, unread] {
            let status = delisted_to_status(&whole).unwrap();
            assert_eq!(delisted_from_status(&status, &"1.21.10".parse().unwrap()), Some(whole));
        }
    }

    #[test]
    fn status_omits_overlong_id_and_keeps_the_rest() {
        let mut state = sample_state();
        let running = state.running.as_mut().unwrap();
        let whole = running.clone();
        let project = |length: usize| ProjectKey { source: Source::Modrinth, project: "x".repeat(length) };
        running.releases.extend(["y".repeat(80), "x".repeat(81)]);
        running.unrequested.extend([project(119), project(120)]);
        let basis = state.basis().unwrap();
        assert_eq!(basis.releases, [whole.releases.as_slice(), &["y".repeat(80)]].concat());
        assert_eq!(basis.unasked, [whole.unrequested[0].to_string(), project(119).to_string()]);

        state.running.as_mut().unwrap().releases = (0..201).map(|number| format!("{number:03}")).collect();
        let basis = state.basis().unwrap();
        assert_eq!((basis.releases.len(), basis.releases.last().map(String::as_str)), (200, Some("199")));
    }

    fn sample_state() -> ServerState {
        ServerState {
            floor: Some("1.21.11".parse().unwrap()),
            running: Some(Running {
                software: Software::Paper,
                minecraft: "1.21.10".parse().unwrap(),
                build: 129,
                releases: vec!["aaa".to_owned(), "bbb".to_owned()],
                unrequested: vec![ProjectKey { source: Source::Modrinth, project: "vault".to_owned() }],
                versions: vec![RunningVersion {
                    project: ProjectKey { source: Source::Modrinth, project: "vault".to_owned() },
                    version: "1.7.3 (build 131)".to_owned(),
                }],
                delisted: vec![vault()],
                image: Some("docker.io/itzg/minecraft-server:2026.8.1-java21@sha256:0".to_owned()),
                java: Some(21),
                since: None,
            }),
            image: Some("example.com/paper:1".to_owned()),
        }
    }

    #[test]
    fn server_state_round_trips_through_status() {
        let whole = sample_state();
        for state in
            [whole.clone(), ServerState { running: None, ..whole.clone() }, ServerState { floor: None, ..whole }]
        {
            let basis = state.basis().expect("the state is not empty");
            let server = server(&json!({"currentVersion": "1.20.1", "basis": basis}));
            assert_eq!(ServerState::from_status(&server), state);
        }
        assert_eq!(ServerState::default().basis(), None);
    }

    #[test]
    fn older_status_yields_only_version_floor() {
        let state = ServerState::from_status(&server(&json!({"currentVersion": "1.21.10", "currentBuild": 129})));
        assert_eq!(state, ServerState { floor: Some("1.21.10".parse().unwrap()), ..ServerState::default() });
        assert_eq!(ServerState::from_status(&server(&json!({}))), ServerState::default());
    }

    #[test]
    fn request_takes_known_state_and_image_of_server() {
        let mut server = server(&json!({}));
        let request = sample_state().build_request(&server, []).unwrap();
        assert!(request.image_is_given);
        assert_eq!(
            (request.floor, request.running, request.image),
            (sample_state().floor, sample_state().running, sample_state().image)
        );
        server.spec.image = Some("example.com/own:2".to_owned());
        let request = sample_state().build_request(&server, []).unwrap();
        assert_eq!((request.image.as_deref(), request.image_is_given), (Some("example.com/own:2"), false));
    }

    #[test]
    fn server_without_eula_or_being_deleted_is_excluded() {
        let mut server = server(&json!({}));
        assert!(takes_part_in_group(&server));
        server.spec.eula = None;
        assert!(!takes_part_in_group(&server));
        server.spec.eula = Some(Eula::Accepted);
        server.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-21T12:00:00Z")).expect("valid time");
        assert!(!takes_part_in_group(&server));
    }
}
