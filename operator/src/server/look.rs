//! Edge (reads). What a pass knows before it decides anything: the server as it is, and the spec as every later step can rely on it.

use crds::PaperMCServer;

use super::check::{CheckedServer, check};
use super::drain::{self, Drain};
use super::observe::{Observed, observe};
use super::plan::too_young;
use super::report::Trouble;
use super::start_line::{Start, stand};
use super::{PassError, new_volume, unread};
use crate::clock::now;
use crate::context::Context;
use crate::requeue::Outcome;

/// What a person reads who has not accepted the EULA.
const NO_EULA: &str =
    "Minecraft's EULA is not accepted: read https://aka.ms/MinecraftEULA and set `spec.eula: Accepted`";

/// What a pass knows before it decides anything.
pub(super) struct Look {
    pub(super) seen: Observed,
    pub(super) checked: CheckedServer,
    pub(super) drain: Drain,
    pub(super) start: Start,
}

/// Looks at the server and at what is asked for it; or how the pass ends that cannot decide anything by it.
pub(super) async fn look(server: &PaperMCServer, ctx: &Context) -> Result<Result<Look, Outcome>, PassError> {
    let at = now();
    let seen = observe(server, ctx, at).await?;
    let (checked, drain) = match read(server, ctx, &seen).await? {
        Ok(read) => read,
        Err(trouble) => return unread(ctx, server, &seen, trouble, at).await.map(Err),
    };
    if let Some(until) = too_young(server, &seen, at) {
        return Ok(Err(Outcome::Under { until: Some(until) }));
    }
    // What is asked for has changed: it is looked at again.
    let start = stand(ctx, server, &checked, &seen, at).await;
    Ok(start.map(|start| Look { seen, checked, drain, start }).ok_or(Outcome::Acted))
}

/// The spec as every later step can rely on it, with the node of its server; or why nothing can be begun with it.
async fn read(
    server: &PaperMCServer,
    ctx: &Context,
    seen: &Observed,
) -> Result<Result<(CheckedServer, Drain), Trouble>, PassError> {
    let checked = match check(server) {
        Ok(checked) if seen.facts.settled.is_some() => checked.past_its_first_start(),
        Ok(checked) => checked,
        Err(complaints) => return Ok(Err(Trouble::Spec(in_words(&complaints)))),
    };
    if !checked.eula {
        return Ok(Err(Trouble::Eula(NO_EULA.to_owned())));
    }
    if let Some(words) = new_volume::missing_claim(ctx, &checked, seen).await? {
        return Ok(Err(Trouble::NoClaim(words)));
    }
    let drain = drain::look(ctx, &checked, seen);
    Ok(drain.map(|drain| (checked, drain)).map_err(|complaint| Trouble::Spec(complaint.to_string())))
}

fn in_words(complaints: &[impl ToString]) -> String {
    complaints.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
