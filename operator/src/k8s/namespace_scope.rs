//! Pure. Where the operator looks: everywhere, or in one namespace.

use kube::Client;
use kube::api::Api;

use crate::Config;

/// Objects of one kind, in the namespaces that are watched.
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
