//! Real sockets in a directory of their own, and a loop that answers or does not.

use super::*;
use crate::gateway::telemetry::Status;
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A directory that vanishes.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("airmend-telemetry-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn config(&self) -> ServerConfig {
        ServerConfig { socket: self.0.join("wlan0/status.sock"), metrics: None }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a loop that answers every request until `asks` returns.
fn answering<T>(server: &mut Server, asks: impl FnOnce() -> T + Send) -> T
where
    T: Send,
{
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let result = asks();
            done.store(true, Ordering::Release);
            result
        });
        let mut answers = 0;
        while !asking.is_finished() {
            if let Some(request) = server.poll() {
                answers += 1;
                let status = Status { flows: answers, ..Status::default() };
                request.answer(Status { interface: "wlan0".into(), ..status });
            }
            thread::sleep(Duration::from_millis(1));
        }
        asking.join().unwrap()
    })
}

/// Sends these bytes and returns all that comes back.
fn ask(path: &Path, request: &str) -> String {
    exchange(UnixStream::connect(path).unwrap(), request)
}

fn exchange(mut stream: impl Read + Write, request: &str) -> String {
    // A server that refuses in mid-request may already have closed.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a header and a body").1
}

#[test]
fn the_socket_answers_with_metrics_status_and_health() {
    let directory = Directory::new();
    let config = directory.config();
    let mut server = Server::start(&config).unwrap();
    let mode = fs::metadata(&config.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let path = &config.socket;
    let (metrics, status, health, other) = answering(&mut server, || {
        let [metrics, status] = ["/metrics", "/status?pretty"].map(|what| ask(path, &get(what)));
        (metrics, status, ask(path, &get("/healthz")), ask(path, &get("/")))
    });
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    assert!(metrics.contains("Content-Type: text/plain; version=0.0.4;"), "{metrics}");
    assert!(body(&metrics).contains("airmend_flows{interface=\"wlan0\""), "{metrics}");
    let status: Status = serde_json::from_str(body(&status)).unwrap();
    assert_eq!(status.interface, "wlan0");
    assert_eq!((health.lines().next(), body(&health)), (Some("HTTP/1.1 200 OK"), "ok\n"));
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
    drop(server);
    assert!(!config.socket.exists(), "the socket is removed in the end");
}

#[test]
fn a_loop_that_hangs_is_told_of_and_does_not_block_later_clients() {
    let directory = Directory::new();
    let config = directory.config();
    let mut server = Server::start(&config).unwrap();
    let answer = ask(&config.socket, &get("/healthz"));
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(body(&answer).contains("stopped or hangs"), "{answer}");
    let answer = answering(&mut server, || ask(&config.socket, &get("/healthz")));
    assert_eq!(body(&answer), "ok\n", "the unanswered request did no harm");
}

#[test]
fn hasty_clients_share_one_status() {
    let directory = Directory::new();
    let config = directory.config();
    let mut server = Server::start(&config).unwrap();
    let counts = answering(&mut server, || {
        let begun = std::time::Instant::now();
        let mut asked = 0;
        let mut last = 0;
        while begun.elapsed() < Duration::from_millis(350) {
            let answer = ask(&config.socket, &get("/status"));
            last = serde_json::from_str::<Status>(body(&answer)).unwrap().flows;
            asked += 1;
        }
        let most = begun.elapsed().as_millis() as u64 / 100 + 1;
        (asked, last, most)
    });
    let (asked, answers, most) = counts;
    assert!(answers <= most, "{answers} of at most {most} for {asked} requests");
}

#[test]
fn bad_requests_get_a_sentence_and_nothing_is_read_without_end() {
    let directory = Directory::new();
    let config = directory.config();
    let mut server = Server::start(&config).unwrap();
    let fields = "A: b\r\n".repeat(65);
    let long = "x".repeat(9_000);
    for (request, expected) in [
        ("POST /status HTTP/1.1\r\n\r\n".to_owned(), "405 "),
        (format!("GET / HTTP/1.1\r\n{fields}\r\n"), "431 "),
        (format!("GET /{long} HTTP/1.1\r\n\r\n"), "431 "),
        ("\0\x01\x02 / HTTP/1.1\r\n\r\n".to_owned(), "400 "),
    ] {
        let answer = answering(&mut server, || ask(&config.socket, &request));
        let status = answer.strip_prefix("HTTP/1.1 ").unwrap_or(&answer);
        assert!(status.starts_with(expected), "{request:.40}: {answer}");
        assert!(body(&answer).ends_with(".\n"), "{answer}");
    }
}

#[test]
fn idle_clients_are_sent_away_and_their_number_is_bounded() {
    let directory = Directory::new();
    let config = directory.config();
    let mut server = Server::start(&config).unwrap();
    let connect = |_| UnixStream::connect(&config.socket).unwrap();
    let mut idle: Vec<_> = (0..=MAX_CLIENTS).map(connect).collect();
    // The server takes clients in their order, so that the last one got the place of the first.
    assert_eq!(exchange(idle.remove(0), ""), "", "it was sent away");
    let response = exchange(idle.remove(0), "GET /hea");
    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    let answer = answering(&mut server, || ask(&config.socket, &get("/healthz")));
    assert_eq!(body(&answer), "ok\n");
}

#[test]
fn clients_that_wait_for_the_loop_keep_their_places() {
    let directory = Directory::new();
    let config = directory.config();
    let mut server = Server::start(&config).unwrap();
    let mut waiting: Vec<_> =
        (0..MAX_CLIENTS).map(|_| UnixStream::connect(&config.socket).unwrap()).collect();
    let mut requests = Vec::new();
    for stream in &mut waiting {
        stream.write_all(get("/healthz").as_bytes()).unwrap();
    }
    while requests.len() < MAX_CLIENTS {
        requests.extend(server.poll());
    }
    let refused = ask(&config.socket, &get("/healthz"));
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(body(&refused).contains("Too many clients"), "{refused}");
    for request in requests {
        request.answer(Status::default());
    }
    for stream in waiting {
        assert_eq!(body(&exchange(stream, "")), "ok\n");
    }
}

#[test]
fn a_dead_socket_is_replaced_and_nothing_else_is() {
    let directory = Directory::new();
    let path = directory.0.join("status.sock");
    let config = ServerConfig { socket: path.clone(), metrics: None };
    drop(UnixListener::bind(&path).unwrap());
    let server = Server::start(&config).unwrap();
    let error = Server::start(&config).unwrap_err().to_string();
    assert!(error.contains("runs already") && error.contains("--socket"), "{error}");
    assert!(path.exists(), "the second one has not taken the socket of the first");
    drop(server);
    fs::write(&path, "precious").unwrap();
    let error = Server::start(&config).unwrap_err().to_string();
    assert!(error.contains("is no socket"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    let long = ServerConfig { socket: directory.0.join("x".repeat(200)), metrics: None };
    let error = Server::start(&long).unwrap_err().to_string();
    assert!(error.starts_with("cannot listen at "), "{error}");
}

#[test]
fn a_server_takes_away_what_it_has_made() {
    let directory = Directory::new();
    let socket = directory.0.join("airmend/wlan0/status.sock");
    let start = |socket: PathBuf| Server::start(&ServerConfig { socket, metrics: None }).unwrap();
    let first = start(socket.clone());
    // Another gateway's directory is beside it.
    let second = start(directory.0.join("airmend/wlan1/status.sock"));
    drop(first);
    assert!(!directory.0.join("airmend/wlan0").exists());
    assert!(directory.0.join("airmend/wlan1/status.sock").exists());
    drop(second);
    drop(start(socket));
    assert!(directory.0.join("airmend").exists(), "who made it found it in use");
    fs::remove_dir(directory.0.join("airmend")).unwrap();
    drop(start(directory.config().socket));
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 0);
}

#[test]
fn a_loopback_address_has_metrics_but_no_status() {
    let directory = Directory::new();
    // A port that was free a moment ago.
    let free = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address: SocketAddr = free.local_addr().unwrap();
    drop(free);
    let metrics = Some(MetricsAddress::Tcp { address, from: None });
    let config = ServerConfig { metrics, ..directory.config() };
    let mut server = Server::start(&config).unwrap();
    let (metrics, status) = answering(&mut server, || {
        let ask = |what| exchange(TcpStream::connect(address).unwrap(), &get(what));
        (ask("/metrics"), ask("/status"))
    });
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    assert!(status.starts_with("HTTP/1.1 403 "), "{status}");

    // Clients that say nothing, or half of a request, keep nobody out.
    let connect = |_| TcpStream::connect(address).unwrap();
    let idle: Vec<_> = (0..3 * MAX_PUBLIC_CLIENTS).map(connect).collect();
    let answers = answering(&mut server, || {
        let mut half: Vec<_> = (0..3 * MAX_PUBLIC_CLIENTS).map(connect).collect();
        for stream in &mut half {
            // One that was sent away cannot be written to.
            let _ = stream.write_all(b"GET /met");
        }
        let scrape = |number| exchange(connect(number), &get("/metrics"));
        (0..24).map(scrape).collect::<Vec<_>>()
    });
    for answer in answers {
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    let status = answering(&mut server, || ask(&config.socket, &get("/status")));
    assert!(status.starts_with("HTTP/1.1 200 OK\r\n"), "{status}");
    drop(idle);
}

#[test]
fn metrics_may_have_a_unix_socket_of_their_own() {
    let directory = Directory::new();
    let path = directory.0.join("metrics.sock");
    let metrics = Some(MetricsAddress::Unix(path.clone()));
    let config = ServerConfig { metrics, ..directory.config() };
    let mut server = Server::start(&config).unwrap();
    let answer = answering(&mut server, || ask(&path, &get("/metrics")));
    assert!(answer.contains("text/plain; version=0.0.4"), "{answer}");
    assert!(body(&answer).contains("# TYPE airmend_build_info gauge\n"), "{answer}");
    let wanted = get("/metrics").replace(
        "\r\n\r\n",
        "\r\nAccept: text/plain;q=0.5,\
                                        application/openmetrics-text;version=1.0.0\r\n\r\n",
    );
    let answer = answering(&mut server, || ask(&path, &wanted));
    assert!(answer.contains("Content-Type: application/openmetrics-text"), "{answer}");
    assert!(body(&answer).ends_with("# EOF\n"), "{answer}");
    drop(server);
    assert!(!path.exists());
}

#[test]
fn a_socket_that_cannot_be_made_leaves_no_directory() {
    let directory = Directory::new();
    let long = "s".repeat(120);
    let config = ServerConfig { socket: directory.0.join("wlan0").join(long), metrics: None };
    assert!(matches!(Server::start(&config), Err(ServerError::Listen { .. })));
    assert!(fs::read_dir(&directory.0).unwrap().next().is_none());
}
