//! Pure. Reads the environment of Nightshift's containers from a pod.

use k8s_openapi::api::core::v1::PodSpec;

/// Whether this init container or native sidecar has this variable.
pub(crate) fn has_variable(spec: &PodSpec, container: &str, variable: &str) -> bool {
    variable_of(spec, container, variable).is_some()
}

/// The value of the variable of this init container or native sidecar.
pub(crate) fn variable_of<'a>(spec: &'a PodSpec, container: &str, variable: &str) -> Option<&'a str> {
    let containers = spec.init_containers.iter().flatten().filter(|of| of.name == container);
    let mut variables = containers.flat_map(|of| of.env.iter().flatten()).filter(|of| of.name == variable);
    variables.next()?.value.as_deref()
}
