//! Edge (writes). Deletes the restore request once its reason no longer exists.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Preconditions};

use super::error::ActError;

/// Deletes the restore request exactly as it is stored now, if the decision is still fresh by then. A request that another operator has
/// written since stays.
pub(crate) async fn delete_if_fresh(
    api: &Api<ConfigMap>,
    name: &str,
    is_fresh: impl Fn() -> Result<(), ActError>,
) -> Result<(), ActError> {
    let failed = |intent, source| ActError::RestoreRequest { intent, name: name.to_owned(), source };
    let Some(existing) = api.get_metadata_opt(name).await.map_err(|source| failed("read", source))? else {
        return Ok(());
    };
    is_fresh()?;
    let exactly = Preconditions { uid: existing.metadata.uid, resource_version: existing.metadata.resource_version };
    match api.delete(name, &DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() }).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(source) => Err(failed("delete", source)),
    }
}
