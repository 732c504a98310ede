package local

import (
	"strings"

	"sunhwa/infra/local/gateway"
	"sunhwa/shared/config"
)

// warnings says, a sentence each, what of cfg has another effect here than its
// user may expect. It shows no value.
func warnings(cfg *config.Local) []string {
	var all []string
	if ignored := ignoredByStandIn(cfg); len(ignored) > 0 {
		all = append(all, "the stand-in for the LLM ignores "+strings.Join(ignored, " and ")+
			": no model is asked; LLM_BASE_URL or LLM_API_KEY configures a real one")
	}
	switch {
	case cfg.TenantClaim == "":
	case bool(cfg.TenantHeader):
		all = append(all, "TENANT_CLAIM is set: a call without the header "+gateway.TenantHeader+" is answered 401")
	default:
		all = append(all, "TENANT_CLAIM is set and nothing here verifies a caller: every call is answered 401; "+
			"LOCAL_TENANT_HEADER=on lets the header "+gateway.TenantHeader+" supply the identity")
	}
	return all
}

// ignoredByStandIn names the variables that are set and of no effect while the
// stand-in answers. Limits of tokens and the response format it does keep to.
func ignoredByStandIn(cfg *config.Local) []string {
	var names []string
	if !cfg.StandInLLM() {
		return nil
	}
	if cfg.LLMModel != "" {
		names = append(names, "LLM_MODEL")
	}
	if cfg.LLMTemperature != nil {
		names = append(names, "LLM_TEMPERATURE")
	}
	return names
}
