//! The laboratory of farcast and its transfers: the parts that Python needs in Rust. Conveniences are in `python/farcast`.
//!
//! Functions that run simulations release the interpreter's lock, and end at Ctrl-C.

#![expect(clippy::needless_pass_by_value, reason = "Python hands values over")]

mod errors;
mod models;
mod points;
mod race;
mod scenario;
mod stats;
mod studies;
mod table;
mod transfer;

use pyo3::prelude::*;

/// Defines the module `farcast._native`.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::add(module)?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<transfer::CancelHandle>()?;
    module.add_class::<points::Sweep>()?;
    module.add_class::<points::Gathering>()?;
    module.add_class::<points::Swept>()?;
    module.add_function(wrap_pyfunction!(points::run_point, module)?)?;
    module.add_function(wrap_pyfunction!(points::compare, module)?)?;
    module.add_function(wrap_pyfunction!(race::tune, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::shipped_documents, module)?)?;
    module.add_function(wrap_pyfunction!(studies::reproduce, module)?)?;
    module.add_function(wrap_pyfunction!(studies::studies, module)?)?;
    module.add_function(wrap_pyfunction!(transfer::send, module)?)?;
    module.add_function(wrap_pyfunction!(transfer::receive, module)?)?;
    models::add(module)?;
    stats::add(module)
}
