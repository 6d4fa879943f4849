//! Passes records to a confluent-kafka producer, and counts their delivery reports, without a call in Python per record.
//!
//! librdkafka loads this extension as a plugin (`plugin.library.paths`) when confluent-kafka creates a producer, and calls
//! `conf_init`. That is how the extension gets to know the producer. It then adds records through `rd_kafka_produceva`
//! and learns their outcome from an interceptor, both of which belong to librdkafka's public interface. Everything else
//! about the producer stays with confluent-kafka: settings, logins, errors, transactions and its end.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_char, c_void, CStr, CString};
use std::mem;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::librdkafka::{self, tag, Bytes, CMessage, Code, Library, Part, PartValue, FAIL, NO_ERROR};
use crate::record::NativeRecord;

const NAME: &CStr = c"cdc-translator";

/// Why a record was not delivered although nothing is wrong with it: another record in its transaction failed, or the
/// producer is stopping (`RD_KAFKA_RESP_ERR__PURGE_QUEUE`, `RD_KAFKA_RESP_ERR__PURGE_INFLIGHT`).
const DROPPED: [Code; 2] = [-152, -151];

/// The outcome of a partition's records.
#[derive(Clone, Copy, Default)]
struct Outcome {
    /// The number of records delivered before the first error.
    delivered: u64,
    /// The first error.
    error: Option<Code>,
}

/// What the threads of a producer share.
///
/// librdkafka can hold its own locks while it reports a record, so none of its functions may be called while the state
/// is locked.
struct Producer {
    handle: *mut c_void,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// librdkafka's object for each topic.
    topics: HashMap<String, usize>,
    /// Outcomes by topic object and partition.
    outcomes: HashMap<(usize, i32), Outcome>,
    /// The first error that is not in `DROPPED`, with its topic object.
    failure: Option<(usize, Code)>,
    is_destroyed: bool,
}

impl State {
    /// Notes the outcome of a partition's next record.
    ///
    /// The broker accepts the records of an idempotent producer only in order, so nothing is delivered after an error.
    fn report(&mut self, topic: usize, partition: i32, error: Code) {
        let outcome = self.outcomes.entry((topic, partition)).or_default();
        if error == NO_ERROR && outcome.error.is_none() {
            outcome.delivered += 1;
        } else {
            outcome.error = outcome.error.or(Some(error));
        }
        if error != NO_ERROR && !DROPPED.contains(&error) && self.failure.is_none() {
            self.failure = Some((topic, error));
        }
    }
}

// SAFETY: librdkafka's handles may be used from any thread.
unsafe impl Send for Producer {}
// SAFETY: as above; everything else is behind the mutex.
unsafe impl Sync for Producer {}

thread_local! {
    /// The producer that this thread created last.
    static CREATED: RefCell<Option<Arc<Producer>>> = const { RefCell::new(None) };
}

impl Producer {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns librdkafka's object for a topic, or null if the name is not valid or the producer is gone.
    fn topic(&self, library: &Library, name: &str) -> *mut c_void {
        {
            let state = self.state();
            if state.is_destroyed {
                return ptr::null_mut();
            }
            if let Some(topic) = state.topics.get(name) {
                return *topic as *mut c_void;
            }
        }
        let Ok(text) = CString::new(name) else { return ptr::null_mut() };
        // SAFETY: the producer exists, and without a configuration the topic uses the producer's.
        let topic = unsafe { (library.topic_new)(self.handle, text.as_ptr(), ptr::null_mut()) };
        if !topic.is_null() {
            // The caller holds the GIL, so no other thread has added the topic since.
            self.state().topics.insert(name.to_owned(), topic as usize);
        }
        topic
    }

    fn release_topics(&self, library: &Library) {
        let topics = {
            let mut state = self.state();
            state.is_destroyed = true;
            mem::take(&mut state.topics)
        };
        for topic in topics.into_values() {
            // SAFETY: it was returned by `topic_new` and is released once, before its producer.
            unsafe { (library.topic_destroy)(topic as *mut c_void) };
        }
    }
}

/// Called by librdkafka when it loads this extension as a plugin.
///
/// # Safety
/// librdkafka passes a valid configuration.
#[no_mangle]
pub unsafe extern "C" fn conf_init(conf: *mut c_void, _: *mut *mut c_void, _: *mut c_char, _: usize) -> Code {
    let Some(library) = librdkafka::library() else { return FAIL };
    // SAFETY: the configuration is valid, and the name and the function are static.
    unsafe { (library.conf_interceptor_add_on_new)(conf, NAME.as_ptr(), on_new, ptr::null_mut()) }
}

extern "C" fn on_new(handle: *mut c_void, _: *const c_void, _: *mut c_void, _: *mut c_char, _: usize) -> Code {
    let Some(library) = librdkafka::library() else { return FAIL };
    let producer = Arc::new(Producer { handle, state: Mutex::default() });
    let shared = Arc::into_raw(Arc::clone(&producer)) as *mut c_void;
    // SAFETY: the handle is valid. The interceptors share one reference, which is never released.
    let code = unsafe {
        match (library.interceptor_add_on_acknowledgement)(handle, NAME.as_ptr(), on_acknowledgement, shared) {
            NO_ERROR => (library.interceptor_add_on_destroy)(handle, NAME.as_ptr(), on_destroy, shared),
            code => code,
        }
    };
    CREATED.with(|created| *created.borrow_mut() = Some(producer));
    code
}

extern "C" fn on_acknowledgement(_: *mut c_void, message: *const CMessage, shared: *mut c_void) -> Code {
    // SAFETY: librdkafka passes a valid message, and the reference from `on_new`.
    let (message, producer) = unsafe { (&*message, &*(shared as *const Producer)) };
    // confluent-kafka reports the records that have a callback.
    if message.opaque.is_null() {
        producer.state().report(message.topic as usize, message.partition, message.error);
    }
    NO_ERROR
}

extern "C" fn on_destroy(_: *mut c_void, shared: *mut c_void) -> Code {
    // SAFETY: it is the reference from `on_new`. It must outlive this call: the threads of the producer's brokers still
    // run, and report the records that are left.
    let producer = unsafe { &*(shared as *const Producer) };
    if let Some(library) = librdkafka::library() {
        producer.release_topics(library);
    }
    NO_ERROR
}

/// The queue of a producer.
#[pyclass(frozen, module = "translator._native.rows")]
pub struct ProducerQueue(Arc<Producer>);

#[pymethods]
impl ProducerQueue {
    /// Finds librdkafka, given the path of confluent-kafka's module. Returns false if it lacks a function.
    #[staticmethod]
    fn load(module: &str) -> bool {
        CString::new(module).is_ok_and(|path| librdkafka::load(&path))
    }

    /// Returns the queue of the producer that this thread has just created with this extension as a plugin.
    #[staticmethod]
    fn created() -> Option<Self> {
        CREATED.with(|created| created.borrow_mut().take()).map(Self)
    }

    /// Queues records in order, until one cannot be queued. Returns the number of queued records.
    fn offer(&self, topic: &str, partition: i32, records: &Bound<'_, PyList>) -> PyResult<usize> {
        let Some(library) = librdkafka::library() else { return Ok(0) };
        let topic = self.0.topic(library, topic);
        if topic.is_null() {
            return Ok(0);
        }
        for (queued, record) in records.iter().enumerate() {
            if self.offer_one(library, topic, partition, &record)? != NO_ERROR {
                return Ok(queued);
            }
        }
        Ok(records.len())
    }

    /// Returns how many of a partition's records were delivered before the first error, and the code of that error.
    fn outcome(&self, topic: &str, partition: i32) -> (u64, Option<Code>) {
        let state = self.0.state();
        let topic = state.topics.get(topic).copied().unwrap_or_default();
        let outcome = state.outcomes.get(&(topic, partition)).copied().unwrap_or_default();
        (outcome.delivered, outcome.error)
    }

    /// Returns the topic and the code of the producer's first error, apart from records that were dropped because of
    /// another error.
    fn failure(&self) -> Option<(String, Code)> {
        let state = self.0.state();
        let (topic, code) = state.failure?;
        let (name, _) = state.topics.iter().find(|(_, handle)| **handle == topic)?;
        Some((name.clone(), code))
    }
}

impl ProducerQueue {
    /// Queues a record of either class.
    fn offer_one(
        &self,
        library: &Library,
        topic: *mut c_void,
        partition: i32,
        record: &Bound<'_, PyAny>,
    ) -> PyResult<Code> {
        if let Ok(native) = record.downcast::<NativeRecord>() {
            let native = native.get();
            let headers = Headers::new(library);
            native.all_headers().for_each(|(name, value)| headers.add(name, value));
            return Ok(self.produce(topic, partition, native.key.as_deref(), native.value.as_deref(), headers));
        }
        let py = record.py();
        let key: Option<Bound<'_, PyBytes>> = record.getattr(intern!(py, "key"))?.extract()?;
        let value: Option<Bound<'_, PyBytes>> = record.getattr(intern!(py, "value"))?.extract()?;
        let headers = headers_of(library, &record.getattr(intern!(py, "headers"))?)?;
        let (key, value) = (key.as_ref().map(|key| key.as_bytes()), value.as_ref().map(|value| value.as_bytes()));
        Ok(self.produce(topic, partition, key, value, headers))
    }

    fn produce(
        &self,
        topic: *mut c_void,
        partition: i32,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: Headers<'_>,
    ) -> Code {
        let library = headers.library;
        let parts = [
            Part { tag: tag::TOPIC, of: PartValue { handle: topic } },
            Part { tag: tag::PARTITION, of: PartValue { number: partition } },
            Part { tag: tag::FLAGS, of: PartValue { number: librdkafka::COPY } },
            Part { tag: tag::KEY, of: PartValue { bytes: bytes_of(key) } },
            Part { tag: tag::VALUE, of: PartValue { bytes: bytes_of(value) } },
            Part { tag: tag::HEADERS, of: PartValue { handle: headers.handle } },
        ];
        // SAFETY: the handles are valid, and librdkafka copies key and value before it returns.
        unsafe {
            let error = (library.produceva)(self.0.handle, parts.as_ptr(), parts.len());
            if error.is_null() {
                mem::forget(headers); // they belong to the queued record now
                return NO_ERROR;
            }
            let code = (library.error_code)(error);
            (library.error_destroy)(error);
            code
        }
    }
}

/// Null is a missing key or value, not an empty one.
fn bytes_of(bytes: Option<&[u8]>) -> Bytes {
    bytes.map_or(Bytes { start: ptr::null(), size: 0 }, |bytes| Bytes {
        start: bytes.as_ptr().cast(),
        size: bytes.len(),
    })
}

/// librdkafka's copy of a record's headers.
struct Headers<'a> {
    library: &'a Library,
    handle: *mut c_void,
}

impl<'a> Headers<'a> {
    fn new(library: &'a Library) -> Self {
        // SAFETY: it allocates room for this many headers.
        Self { library, handle: unsafe { (library.headers_new)(8) } }
    }

    fn add(&self, name: &str, value: Option<&[u8]>) {
        let value = bytes_of(value);
        // SAFETY: librdkafka copies name and value before it returns.
        unsafe {
            (self.library.header_add)(
                self.handle,
                name.as_ptr().cast(),
                name.len() as isize,
                value.start,
                value.size as isize,
            );
        }
    }
}

impl Drop for Headers<'_> {
    fn drop(&mut self) {
        // SAFETY: no record owns them.
        unsafe { (self.library.headers_destroy)(self.handle) }
    }
}

/// Returns the headers of a `Record`.
fn headers_of<'a>(library: &'a Library, headers: &Bound<'_, PyAny>) -> PyResult<Headers<'a>> {
    let made = Headers::new(library);
    for header in headers.downcast::<PyList>()?.iter() {
        let (name, value): (Bound<'_, PyString>, Bound<'_, PyAny>) = header.extract()?;
        let name = name.to_str()?;
        if let Ok(text) = value.downcast::<PyString>() {
            made.add(name, Some(text.to_str()?.as_bytes()));
        } else {
            let bytes: Option<Bound<'_, PyBytes>> = value.extract()?;
            made.add(name, bytes.as_ref().map(|bytes| bytes.as_bytes()));
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOO_LARGE: Code = 10;

    fn reported(errors: &[Code]) -> State {
        let mut state = State::default();
        for error in errors {
            state.report(1, 0, *error);
        }
        state
    }

    #[test]
    fn nothing_counts_after_an_error() {
        let outcome = reported(&[0, 0, TOO_LARGE, 0, -184]).outcomes[&(1, 0)];
        assert_eq!((2, Some(TOO_LARGE)), (outcome.delivered, outcome.error));
    }

    #[test]
    fn a_dropped_record_is_not_the_cause() {
        let state = reported(&[DROPPED[0], DROPPED[1], TOO_LARGE]);
        assert_eq!(Some((1, TOO_LARGE)), state.failure);
        assert_eq!(Some(DROPPED[0]), state.outcomes[&(1, 0)].error);
    }
}
