//! Edge (writes). Deletes the restore request once its reason no longer exists.

use k8s_openapi::api::core::v1::ConfigMap;

use super::error::ActError;
use crate::k8s::owned_api::OwnedApi;

/// Deletes the restore request exactly as it is stored now, if the decision is still fresh by then. A request that another operator has
/// written since stays.
pub(crate) async fn delete_if_fresh(
    api: &OwnedApi<ConfigMap>,
    name: &str,
    is_fresh: impl Fn() -> Result<(), ActError>,
) -> Result<(), ActError> {
    let failed = |intent| ActError::restore_request(intent, name.to_owned());
    let Some(existing) = api.get_opt(name).await.map_err(failed("read"))? else { return Ok(()) };
    is_fresh()?;
    api.delete(&existing).await.map_err(failed("delete"))
}
