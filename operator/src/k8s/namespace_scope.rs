//! Pure. Selects the namespaces that the operator watches: all, or those of a list.

use kube::Client;
use kube::api::Api;

use crate::Config;

/// The API for objects of one kind in one watched namespace, or in all.
pub(crate) struct Scoped<K> {
    /// `None` means all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) api: Api<K>,
}

/// The APIs for objects of one kind: one for all namespaces, or one for each watched namespace.
pub(crate) fn scoped<K>(client: &Client, config: &Config) -> Vec<Scoped<K>>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    let namespaces = config.watched_namespaces();
    if namespaces.is_empty() {
        return vec![Scoped { namespace: None, api: Api::all(client.clone()) }];
    }
    namespaces
        .into_iter()
        .map(|name| Scoped { api: Api::namespaced(client.clone(), &name), namespace: Some(name) })
        .collect()
}
