//! Edge (writes). Groups the tests of `make test`.
//!
//! Each follows servers through several features that need a real Kubernetes, such as admission, the StatefulSet
//! controller, the kubelet, permissions, evictions and the image.

mod abnormal_stop;
mod access_mode;
mod chart;
mod crash_loop;
mod definitions;
mod deletion;
mod drain;
mod failed_update;
mod first_start;
mod image_pull;
mod lost_volume;
mod outside_window;
mod update;
