//! Edge (writes). Tests Nightshift in a real Kubernetes cluster, each test in a namespace of its own.
//!
//! `make test` runs the module `stories`: long sequences on single servers, for behaviour that only a real cluster can
//! show. `make test-all` runs all modules.
//!
//! `make test` starts the cluster and builds the images. To run them without `make test`: `make cluster image`,
//! `eval "$(dev/cluster env)"`, then `cargo test -p operator --features cluster-tests --test cluster`. The state after
//! a failed test is kept below `target/cluster-dumps`. With `NIGHTSHIFT_KEEP=1` its namespace is kept too.
//! `NIGHTSHIFT_LONG=1` runs longer observations.

#[cfg(test)] // clippy allows `unwrap` in tests only, and recognises test helpers by this attribute
mod cluster {
    mod approval;
    mod blackouts;
    mod chart;
    mod cordon;
    mod deletes;
    mod downtime_bench;
    mod dump;
    mod eventually;
    mod exclusive_node;
    mod first_start;
    mod follows;
    mod graceful_stop;
    mod hold;
    mod images;
    mod install_guide;
    mod kubectl;
    mod manifests;
    mod node;
    mod notify;
    mod observer;
    mod online_backup;
    mod operator_crash;
    mod opportunistic;
    mod outages;
    mod partial_update;
    mod players;
    mod plugin_data;
    mod restart;
    mod restore;
    mod roll_forward;
    mod rollback_to;
    mod seed_volume;
    mod server;
    mod server_crash_loop;
    mod shared;
    mod stories;
    mod suspended;
    mod test_env;
    mod unmanaged_jars;
    mod unsolvable;
    mod update;
    mod update_slots;
    mod upstream;
    mod verification;
    mod volume;
    mod without_rcon;
    mod world_content;
    mod world_damage;
}
