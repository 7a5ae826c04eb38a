// This guest registers its function sum as a tool, asks a model to use it, and prints the answer and
// what it cost in tokens. In Rust the value of a function pointer is its place in the table.

use std::{process, slice, str};

#[link(wasm_import_module = "spear")]
extern "C" {
    fn cchat_create() -> i32;
    fn cchat_write_msg(fd: i32, role: *const u8, role_len: u32, content: *const u8, content_len: u32) -> i32;
    fn cchat_write_fn(fd: i32, fn_offset: i32, json: *const u8, json_len: u32) -> i32;
    fn cchat_ctl(fd: i32, cmd: i32, arg: *mut u8, arg_len: *mut u32) -> i32;
    fn cchat_send(fd: i32, flags: i32) -> i32;
    fn cchat_recv(fd: i32, out: *mut u8, out_len: *mut u32) -> i32;
    fn cchat_close(fd: i32) -> i32;
}

const SET_PARAM: i32 = 1;
const GET_METRICS: i32 = 2;
const ENABLE_METRICS: i32 = 1;
const AUTO_TOOL_CALL: i32 = 2;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;

/// number finds the whole number of a member, which is enough for what the schema allows.
fn number(args: &str, member: &str) -> Option<i64> {
    let rest = args.split_once(member)?.1.split_once(':')?.1.trim_start();
    let end = rest.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

extern "C" fn sum(args: *const u8, args_len: u32, out: *mut u8, out_len: *mut u32) -> i32 {
    let args = unsafe { slice::from_raw_parts(args, args_len as usize) };
    let args = match str::from_utf8(args) {
        Ok(args) => args,
        Err(_) => return -EINVAL,
    };
    let (a, b) = match (number(args, "\"a\""), number(args, "\"b\"")) {
        (Some(a), Some(b)) => (a, b),
        _ => return -EINVAL,
    };
    let answer = format!("{{\"sum\":{}}}", a + b);
    unsafe {
        let room = *out_len;
        *out_len = answer.len() as u32;
        if *out_len > room {
            return -ENOSPC;
        }
        slice::from_raw_parts_mut(out, answer.len()).copy_from_slice(answer.as_bytes());
    }
    0
}

fn must(rc: i32) -> i32 {
    if rc < 0 {
        eprintln!("error {}", -rc);
        process::exit(-rc);
    }
    rc
}

fn set(fd: i32, key: &str, value: usize) {
    let mut text = format!("{{\"key\":\"{key}\",\"value\":{value}}}").into_bytes();
    let mut n = text.len() as u32;
    must(unsafe { cchat_ctl(fd, SET_PARAM, text.as_mut_ptr(), &mut n) });
}

fn main() {
    let prompt = "Please call sum for a=7 and b=35.";
    let definition = r#"{"type":"function","function":{"name":"sum","description":"Adds two whole numbers.",
        "parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}}}"#;
    let mut arena = vec![0u8; 64 << 10];
    unsafe {
        let fd = must(cchat_create());
        must(cchat_write_msg(fd, "user".as_ptr(), 4, prompt.as_ptr(), prompt.len() as u32));
        must(cchat_write_fn(fd, sum as *const () as usize as i32, definition.as_ptr(), definition.len() as u32));
        set(fd, "tool_arena_ptr", arena.as_mut_ptr() as usize);
        set(fd, "tool_arena_len", arena.len());

        let response = must(cchat_send(fd, ENABLE_METRICS | AUTO_TOOL_CALL));
        for metrics in [false, true] {
            let mut text = vec![0u8; 64 << 10];
            let mut n = text.len() as u32;
            must(if metrics {
                cchat_ctl(response, GET_METRICS, text.as_mut_ptr(), &mut n)
            } else {
                cchat_recv(response, text.as_mut_ptr(), &mut n)
            });
            println!("{}", String::from_utf8_lossy(&text[..n as usize]));
        }
        must(cchat_close(response));
        must(cchat_close(fd));
    }
}
