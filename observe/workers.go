package observe

import (
	"github.com/prometheus/client_golang/prometheus"
)

// A WorkerCount says how workers stand that show one token, or how this process does as a worker.
type WorkerCount struct {
	Fleet     string // the name of the token in the configuration; "" where this process is the worker
	Connected int
	Credit    int    // calls that those may have at once
	InFlight  int    // calls that they have
	Connects  uint64 // connections that were made so far
	// OK, Failed, NotRun and Late are the calls so far: with a result, without one, given back, and those whose
	// results came when the call was another's.
	OK, Failed, NotRun, Late uint64
}

// CountWorkers has the metrics tell of workers, too: count is asked at each scrape. Its fleets are those of
// the configuration, each once. It is called once.
func (m *Metrics) CountWorkers(count func() []WorkerCount) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	m.registry.MustRegister(&workerSeries{count: count,
		connected: desc("lathe_worker_connected", "Workers that are connected.", "fleet"),
		credit:    desc("lathe_worker_credit", "Calls that workers may have at once.", "fleet"),
		inFlight:  desc("lathe_worker_calls_in_flight", "Calls that workers have.", "fleet"),
		connects:  desc("lathe_worker_connects_total", "Connections that workers have made, the first and the others.", "fleet"),
		calls:     desc("lathe_worker_calls_total", "Calls that workers have had, by what came of them.", "fleet", "outcome")})
}

// workerSeries asks for the numbers when they are wanted: kept ones would drift.
type workerSeries struct {
	count                                        func() []WorkerCount
	connected, credit, inFlight, connects, calls *prometheus.Desc
}

func (s *workerSeries) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.connected, s.credit, s.inFlight, s.connects, s.calls} {
		to <- d
	}
}

func (s *workerSeries) Collect(to chan<- prometheus.Metric) {
	for _, c := range s.count() {
		gauge := func(d *prometheus.Desc, n int) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), c.Fleet)
		}
		counter := func(d *prometheus.Desc, n uint64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
		}
		gauge(s.connected, c.Connected)
		gauge(s.credit, c.Credit)
		gauge(s.inFlight, c.InFlight)
		counter(s.connects, c.Connects, c.Fleet)
		counter(s.calls, c.OK, c.Fleet, "ok")
		counter(s.calls, c.Failed, c.Fleet, "error")
		counter(s.calls, c.NotRun, c.Fleet, "not_run")
		counter(s.calls, c.Late, c.Fleet, "late")
	}
}
