package wasmrt

import "time"

// Now returns the time of the guest's clock; see [Grants].
func (i *Instance) Now() time.Time {
	sec, nsec := i.env.walltime()
	return time.Unix(sec, int64(nsec)).UTC()
}

// Sleep blocks for d. For a guest without a granted clock it returns at once and advances the guest's time. Host functions call it. If
// the context of the running call ends, Sleep ends the guest.
func (i *Instance) Sleep(d time.Duration) { i.env.sleep(int64(d)) }

// Random fills p with bytes from the guest's random source; see [Grants]. If the context of the running call ends, it ends the guest.
func (i *Instance) Random(p []byte) error {
	_, err := i.env.Read(p)
	return err
}
