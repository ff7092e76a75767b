//! Pure. Selects the namespaces that the operator watches: all, or one.

use kube::Client;
use kube::api::Api;

use crate::Config;

/// The API for objects of one kind in the watched namespaces.
pub(crate) fn scoped<K>(client: &Client, config: &Config) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    if config.watch_namespace.is_empty() {
        Api::all(client.clone())
    } else {
        Api::namespaced(client.clone(), &config.watch_namespace)
    }
}
