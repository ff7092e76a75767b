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
    mod alone;
    mod approval;
    mod blackouts;
    mod chart;
    mod cordon;
    mod crash;
    mod crashes;
    mod damage;
    mod deletes;
    mod dump;
    mod first_start;
    mod follows;
    mod forward;
    mod hold;
    mod hot_backup;
    mod images;
    mod impossible;
    mod kubectl;
    mod manifests;
    mod measured;
    mod new_volume;
    mod node;
    mod notify;
    mod opportunistic;
    mod outages;
    mod own_jars;
    mod players;
    mod plugin_data;
    mod restart;
    mod restore;
    mod scoped;
    mod server;
    mod shared;
    mod stops;
    mod stories;
    mod suspended;
    mod trial;
    mod turns;
    mod undo;
    mod update;
    mod upstream;
    mod volume;
    mod wait;
    mod without_rcon;
    mod witness;
    mod world;
    mod worlds;
}
