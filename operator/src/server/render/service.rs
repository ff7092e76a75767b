//! Pure. Renders the Service to which players connect. It never exposes RCON.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::child_meta;
use crate::k8s::labels;
use validate::CheckedServer;

/// Minecraft's port, in the pod and on the Service.
pub(crate) const GAME_PORT: i32 = 25_565;

/// The Service `<name>` on the game port.
pub(crate) fn build_service(server: &CheckedServer) -> Service {
    let mut metadata = child_meta(server, server.name.clone());
    if !server.service.annotations.is_empty() {
        metadata.annotations = Some(server.service.annotations.clone());
    }
    Service {
        metadata,
        spec: Some(ServiceSpec {
            type_: Some(server.service.kind.clone()),
            selector: Some(labels::selector(&server.name)),
            ports: Some(vec![ServicePort {
                name: Some("minecraft".to_owned()),
                port: GAME_PORT,
                target_port: Some(IntOrString::Int(GAME_PORT)),
                protocol: Some("TCP".to_owned()),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}
