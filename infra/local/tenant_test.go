package local_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/local/client"
	"sunhwa/infra/local/gateway"
)

// statuses calls every route as tenant and returns what each answered.
func statuses(t *testing.T, base, tenant string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, r := range gateway.Routes() {
		method, path, _ := strings.Cut(r.Key, " ")
		path = strings.NewReplacer("{targetId}", "t", "{jobId}", "01ARZ3NDEKTSV4RRFFQ69G5FAV").Replace(path)
		req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(`{"comments":[{"id":"a","text":"x"}]}`))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		if tenant != "" {
			req.Header.Set(gateway.TenantHeader, tenant)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		all[r.Key] = resp.StatusCode
	}
	return all
}

// A configured claim is asked for here as in the cloud: with nobody to verify it,
// no call gets in, whatever header it brings.
func TestStack_tenantClaim_noIdentityIs401(t *testing.T) {
	for claim, header := range map[string]string{"sub": "off", "userArn": "off", "tenant": "on", "accountId": "on"} {
		env := map[string]string{"TENANT_CLAIM": claim, "LOCAL_TENANT_HEADER": header}
		var out logs
		s, c := up(t, settings(t, newModel(t), env), &out, nil)
		for route, status := range statuses(t, c.Base, "") {
			assert.Equal(t, 401, status, "%s %s %s", claim, header, route)
		}
		if header == "off" {
			for route, status := range statuses(t, c.Base, "acme") {
				assert.Equal(t, 401, status, "%s %s, with the header", claim, route)
			}
		}
		warned(t, s, &out, "TENANT_CLAIM", "401")
	}
}

func TestStack_tenantClaim_headerSuppliesIt(t *testing.T) {
	for _, claim := range []string{"sub", "accountId", "userId", "userArn"} {
		_, c := up(t, settings(t, newModel(t), map[string]string{"TENANT_CLAIM": claim, "LOCAL_TENANT_HEADER": "on"}), nil, nil)
		acme, globex := client.New(c.Base), client.New(c.Base)
		acme.Tenant, globex.Tenant = "acme", "globex"
		a, _, err := acme.Start(t.Context(), "same", numbered(1))
		require.NoError(t, err, claim)
		_, _, err = acme.Job(t.Context(), a.JobID)
		require.NoError(t, err, claim)
		_, _, err = globex.Job(t.Context(), a.JobID)
		refused(t, err, 404, "NOT_FOUND")
		_, _, err = c.Job(t.Context(), a.JobID)
		refused(t, err, 401, "UNAUTHENTICATED")
	}
}
