package observe

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// A WorkerCount contains the numbers of one worker pool, or of this process as a worker, for [Metrics.CountWorkers].
type WorkerCount struct {
	Pool      string // name of the worker pool in the configuration; "": this process as a worker
	Connected int    // number of connected workers
	Credit    int    // maximum number of concurrent calls of the connected workers
	InFlight  int    // number of calls that the connected workers are executing
	Connects  uint64 // number of connections so far
	// OK is the number of calls so far that succeeded, Failed of those that failed, and NotRun of those that workers returned without
	// executing them. Late is the number of calls whose result arrived after another worker had received the call.
	OK, Failed, NotRun, Late uint64
}

// CountWorkers adds the metrics of workers. At each scrape, count is called and must return one WorkerCount for each worker pool of the
// configuration. It may be called from several goroutines at once. A second CountWorkers replaces count. Before the first CountWorkers,
// there are no metrics of workers.
func (m *Metrics) CountWorkers(count func() []WorkerCount) { m.workers.count.Store(&count) }

// makeWorkerSeries registers the series of workers, of which there are none before CountWorkers is called.
func makeWorkerSeries(r registry) *workerSeries {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	s := &workerSeries{
		connected: desc("lathe_worker_connected", "Workers that are connected.", "fleet"),
		credit:    desc("lathe_worker_credit", "Calls that workers may have at once.", "fleet"),
		inFlight:  desc("lathe_worker_calls_in_flight", "Calls that workers have.", "fleet"),
		connects:  desc("lathe_worker_connects_total", "Connections that workers have made, the first and the others.", "fleet"),
		calls:     desc("lathe_worker_calls_total", "Calls that workers have had, by what came of them.", "fleet", "outcome")}
	r.MustRegister(s)
	return s
}

// workerSeries is a collector that calls count at each scrape.
type workerSeries struct {
	count                                        atomic.Pointer[func() []WorkerCount] // nil: there are no workers
	connected, credit, inFlight, connects, calls *prometheus.Desc
}

func (s *workerSeries) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.connected, s.credit, s.inFlight, s.connects, s.calls} {
		to <- d
	}
}

func (s *workerSeries) Collect(to chan<- prometheus.Metric) {
	count := s.count.Load()
	if count == nil {
		return
	}
	for _, c := range (*count)() {
		gauge := func(d *prometheus.Desc, n int) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), c.Pool)
		}
		counter := func(d *prometheus.Desc, n uint64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
		}
		gauge(s.connected, c.Connected)
		gauge(s.credit, c.Credit)
		gauge(s.inFlight, c.InFlight)
		counter(s.connects, c.Connects, c.Pool)
		counter(s.calls, c.OK, c.Pool, "ok")
		counter(s.calls, c.Failed, c.Pool, "error")
		counter(s.calls, c.NotRun, c.Pool, "not_run")
		counter(s.calls, c.Late, c.Pool, "late")
	}
}
