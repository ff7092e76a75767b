//! Edge (writes). `resolver restart`: requests one restart of a server in the cluster, without an update.

use jiff::Timestamp;

use crate::Output;
use crate::args::RestartArgs;
use crate::cluster;
use crate::input::block_on;
use upstream::format_chain;

/// Runs `resolver restart`. The operator warns the players, saves the world and deletes the pod.
pub(crate) fn restart(restart: &RestartArgs, now: Timestamp) -> Result<Output, Output> {
    let mut notes = Vec::new();
    let requested = block_on(cluster::request_restart(&restart.place, &restart.server, now, &mut notes));
    let requested = requested.map_err(|error| Output::failure(vec![error]))?;
    let name = requested.map_err(|error| Output::failure(vec![format_chain(&error)]))?;
    let (namespace, server) = name.split_once('/').unwrap_or(("default", &name));
    let text = format!(
        "Requested a restart of {name}. Players are warned first, as before every restart.\n\
        Events of it: kubectl -n {namespace} events --for papermcserver/{server}\n"
    );
    Ok(Output { stderr: notes, ..Output::success(text) })
}
