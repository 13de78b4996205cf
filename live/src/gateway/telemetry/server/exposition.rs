//! The Prometheus text format 0.0.4, for whoever does not ask for OpenMetrics: made of it, since
//! both differ in names only.

/// The media type of [`classic`].
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The same metrics in the older format: the type `info` is unknown there, and the name of a
/// counter has its suffix in all lines.
pub(super) fn classic(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        let mut words = line.splitn(4, ' ');
        let (mark, what) = (words.next(), words.next());
        let (name, rest) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match (mark, what) {
            (Some("#"), Some("HELP")) => help = Some(rest),
            (Some("#"), Some("TYPE")) => {
                let (suffix, kind) = match rest {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    other => ("", other),
                };
                if let Some(help) = help.take() {
                    text += &format!("# HELP {name}{suffix} {help}\n");
                }
                text += &format!("# TYPE {name}{suffix} {kind}\n");
            }
            // A unit, or the end.
            (Some("#"), _) => {}
            _ => {
                text += line;
                text += "\n";
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_infos_are_renamed_and_the_rest_stays() {
        let open = "# HELP a_build The program's version.\n# TYPE a_build info\n\
                    a_build_info{version=\"1\"} 1\n\
                    # HELP a_cpu_seconds Time.\n# TYPE a_cpu_seconds counter\n\
                    # UNIT a_cpu_seconds seconds\na_cpu_seconds_total 0.5\n\
                    # TYPE a_rtt histogram\na_rtt_bucket{le=\"+Inf\"} 3\n# EOF\n";
        let expected = "# HELP a_build_info The program's version.\n# TYPE a_build_info gauge\n\
                        a_build_info{version=\"1\"} 1\n\
                        # HELP a_cpu_seconds_total Time.\n# TYPE a_cpu_seconds_total counter\n\
                        a_cpu_seconds_total 0.5\n\
                        # TYPE a_rtt histogram\na_rtt_bucket{le=\"+Inf\"} 3\n";
        assert_eq!(classic(open), expected);
    }
}
