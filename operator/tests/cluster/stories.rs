//! Edge (writes). The tests of `make test`: each follows servers through several promises that only a real Kubernetes can show, such as
//! admission, the StatefulSet controller, the kubelet, rights, evictions and the image.

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
