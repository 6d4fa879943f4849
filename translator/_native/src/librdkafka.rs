//! The part of librdkafka's C interface that `producer_queue.rs` uses, in the library that confluent-kafka has loaded.
//!
//! Only this module and `producer_queue.rs` contain `unsafe` code. Neither of them reads messages.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::OnceLock;

/// `rd_kafka_resp_err_t`.
pub type Code = c_int;
/// `RD_KAFKA_RESP_ERR_NO_ERROR`.
pub const NO_ERROR: Code = 0;
/// `RD_KAFKA_RESP_ERR__FAIL`.
pub const FAIL: Code = -196;

/// `RD_KAFKA_MSG_F_COPY`.
pub const COPY: c_int = 2;

/// `rd_kafka_message_t`.
#[repr(C)]
pub struct CMessage {
    pub error: Code,
    pub topic: *mut c_void,
    pub partition: i32,
    payload: *mut c_void,
    payload_size: usize,
    key: *mut c_void,
    key_size: usize,
    offset: i64,
    pub opaque: *mut c_void,
}

/// The tags of `rd_kafka_vu_t` (`rd_kafka_vtype_t`).
pub mod tag {
    use std::ffi::c_int;

    /// A topic's handle.
    pub const TOPIC: c_int = 2;
    pub const PARTITION: c_int = 3;
    pub const VALUE: c_int = 4;
    pub const KEY: c_int = 5;
    pub const FLAGS: c_int = 7;
    pub const HEADERS: c_int = 10;
}

/// `rd_kafka_vu_t`.
#[repr(C)]
pub struct Part {
    pub tag: c_int,
    pub of: PartValue,
}

/// The union in `rd_kafka_vu_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union PartValue {
    pub handle: *mut c_void,
    pub number: c_int,
    pub bytes: Bytes,
    size: [u64; 8],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    pub start: *const c_void,
    pub size: usize,
}

pub type OnNew = extern "C" fn(*mut c_void, *const c_void, *mut c_void, *mut c_char, usize) -> Code;
pub type OnAcknowledgement = extern "C" fn(*mut c_void, *const CMessage, *mut c_void) -> Code;
pub type OnDestroy = extern "C" fn(*mut c_void, *mut c_void) -> Code;

/// The functions of the library.
pub struct Library {
    pub conf_interceptor_add_on_new: unsafe extern "C" fn(*mut c_void, *const c_char, OnNew, *mut c_void) -> Code,
    pub interceptor_add_on_acknowledgement:
        unsafe extern "C" fn(*mut c_void, *const c_char, OnAcknowledgement, *mut c_void) -> Code,
    pub interceptor_add_on_destroy: unsafe extern "C" fn(*mut c_void, *const c_char, OnDestroy, *mut c_void) -> Code,
    pub topic_new: unsafe extern "C" fn(*mut c_void, *const c_char, *mut c_void) -> *mut c_void,
    pub topic_destroy: unsafe extern "C" fn(*mut c_void),
    pub headers_new: unsafe extern "C" fn(usize) -> *mut c_void,
    pub header_add: unsafe extern "C" fn(*mut c_void, *const c_char, isize, *const c_void, isize) -> Code,
    pub headers_destroy: unsafe extern "C" fn(*mut c_void),
    pub produceva: unsafe extern "C" fn(*mut c_void, *const Part, usize) -> *mut c_void,
    pub error_code: unsafe extern "C" fn(*const c_void) -> Code,
    pub error_destroy: unsafe extern "C" fn(*mut c_void),
}

static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();

/// The library, once `load` has found it.
pub fn library() -> Option<&'static Library> {
    LIBRARY.get()?.as_ref()
}

/// Finds the library among those that a loaded module depends on. Returns false if a function is missing.
pub fn load(module: &CStr) -> bool {
    LIBRARY.get_or_init(|| find(module)).is_some()
}

extern "C" {
    fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_LAZY: c_int = 1;

fn find(module: &CStr) -> Option<Library> {
    // SAFETY: `module` is a path. The module is never closed, so its functions stay valid.
    let handle = unsafe { dlopen(module.as_ptr(), RTLD_LAZY) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: librdkafka's header declares these functions with the types of the fields, and its interface is stable.
    unsafe {
        Some(Library {
            conf_interceptor_add_on_new: function(handle, c"rd_kafka_conf_interceptor_add_on_new")?,
            interceptor_add_on_acknowledgement: function(handle, c"rd_kafka_interceptor_add_on_acknowledgement")?,
            interceptor_add_on_destroy: function(handle, c"rd_kafka_interceptor_add_on_destroy")?,
            topic_new: function(handle, c"rd_kafka_topic_new")?,
            topic_destroy: function(handle, c"rd_kafka_topic_destroy")?,
            headers_new: function(handle, c"rd_kafka_headers_new")?,
            header_add: function(handle, c"rd_kafka_header_add")?,
            headers_destroy: function(handle, c"rd_kafka_headers_destroy")?,
            produceva: function(handle, c"rd_kafka_produceva")?,
            error_code: function(handle, c"rd_kafka_error_code")?,
            error_destroy: function(handle, c"rd_kafka_error_destroy")?,
        })
    }
}

/// Returns a function of a library.
///
/// # Safety
/// The library is open, and `F` is the type of a pointer to this function.
unsafe fn function<F: Copy>(handle: *mut c_void, name: &CStr) -> Option<F> {
    let found = dlsym(handle, name.as_ptr());
    (!found.is_null()).then(|| std::mem::transmute_copy::<*mut c_void, F>(&found))
}
