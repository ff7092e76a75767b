//! Pure. Defines the pull of images on the server's node before it is stopped.

pub(crate) mod pod_status;
pub(crate) mod rejection;
pub(crate) mod request;
pub(crate) mod state;
