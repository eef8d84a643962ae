//! Adversaries against the process owner: each must end with an empty tree, an unharmed host and the right verdict.

mod adversaries;
mod hosts;
mod output;
mod programs;
mod support;
mod tiers;
