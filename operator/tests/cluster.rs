//! Edge (writes). Tests of Nightshift in a real Kubernetes, each in a namespace of its own.
//!
//! `make test` runs the module `stories`: long lives of single servers, for what only a real cluster can show. `make test-all` runs all
//! modules.
//!
//! `make test` brings the cluster up and builds the images. By hand: `make cluster image`, `eval "$(dev/cluster env)"`, then
//! `cargo test -p operator --features cluster-tests --test cluster`. What a failed test saw is kept below `target/cluster-dumps`;
//! with `NIGHTSHIFT_KEEP=1` its namespace is, too. `NIGHTSHIFT_LONG=1` looks longer where only time can tell.

#[cfg(test)] // clippy allows `unwrap` in tests only, and knows helpers of tests by this
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
