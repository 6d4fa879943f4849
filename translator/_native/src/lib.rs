//! The native path of the translator: converts the bytes of common row messages to Kafka records in one pass.
//!
//! The plain path in Python is the specification. Its compiler provides the layouts of tables, and its converters
//! handle cells with unusual spellings. A message that is unusual in any other way is not translated here. The plain
//! path translates it, and the order of the run is kept. See `docs/native.md`.

mod avro;
mod avro_json;
mod avro_read;
mod blocks;
mod calendar;
mod canal;
mod canal_members;
mod cells;
mod continuity;
mod debezium;
mod debezium_avro;
mod dts_avro;
mod dts_cells;
mod dts_record;
mod dts_times;
mod event;
mod generations;
mod header;
mod json;
mod json_output;
mod known_rows;
mod librdkafka;
mod masks;
mod notes;
mod objects;
mod output;
mod producer_queue;
mod python_event;
mod qlik;
mod qlik_frames;
mod qlik_message;
mod qlik_rows;
mod qlik_tables;
mod reason;
mod record;
mod row;
mod row_key;
mod run;
mod scan;
mod shareplex;
mod shareplex_message;
mod table;
mod times;
mod upsert;

use pyo3::prelude::*;

/// The version of the interface to Python, the same as in `translator/_native/__init__.py`.
const SEAM: u32 = 17;

/// The extension module `translator._native.rows`.
#[pymodule]
fn rows(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("SEAM", SEAM)?;
    module.add_function(wrap_pyfunction!(run::totals, module)?)?;
    module.add_function(wrap_pyfunction!(run::records, module)?)?;
    module.add_class::<output::Taken>()?;
    module.add_class::<record::NativeRecord>()?;
    module.add_class::<producer_queue::ProducerQueue>()?;
    module.add_class::<continuity::KnownRows>()?;
    module.add_class::<canal::CanalRows>()?;
    module.add_class::<dts_avro::DtsAvroRows>()?;
    module.add_class::<qlik::QlikRows>()?;
    module.add_class::<shareplex::SharePlexRows>()
}
