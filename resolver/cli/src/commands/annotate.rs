//! Edge (writes). `resolver restart` and `resolver refresh`: annotate one server in the cluster with a request to the operator.

use crds::annotations::{RECONCILE, RESTART_NOW};
use jiff::Timestamp;

use crate::Output;
use crate::args::OneServerArgs;
use crate::cluster;
use crate::input::block_on;
use upstream::format_chain;

/// Runs `resolver restart`. The operator warns the players, saves the world and deletes the pod.
pub(crate) fn restart(server: &OneServerArgs, now: Timestamp) -> Result<Output, Output> {
    request(server, RESTART_NOW, now, |name| {
        format!("Requested a restart of {name}. Players are warned first, as before every restart.")
    })
}

/// Runs `resolver refresh`. The operator reads the pages of the upstreams anew, and solves.
pub(crate) fn refresh(server: &OneServerArgs, now: Timestamp) -> Result<Output, Output> {
    request(server, RECONCILE, now, |name| {
        format!("Requested a look for new releases of {name}. Updates still wait for their window.")
    })
}

/// Writes the annotation. `text` is the first line of the answer, for the full name of the server.
fn request(
    server: &OneServerArgs,
    annotation: &str,
    now: Timestamp,
    text: impl FnOnce(&str) -> String,
) -> Result<Output, Output> {
    let mut notes = Vec::new();
    let requested = block_on(cluster::annotate(&server.place, &server.server, (annotation, now), &mut notes));
    let requested = requested.map_err(|error| Output::failure(vec![error]))?;
    let name = requested.map_err(|error| Output::failure(vec![format_chain(&error)]))?;
    let (namespace, server) = name.split_once('/').unwrap_or(("default", &name));
    let text = format!("{}\nEvents of it: kubectl -n {namespace} events --for papermcserver/{server}\n", text(&name));
    Ok(Output { stderr: notes, ..Output::success(text) })
}
