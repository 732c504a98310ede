package gateway

import (
	"crypto/rand"
	"encoding/base64"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// stage is the stage whose name does not appear in paths.
const stage = "$default"

// event makes the payload-2.0 event of a request whose route and body are known.
// tenant becomes the caller's identity under claim, unless one of them is empty.
func event(r *http.Request, route Route, params map[string]string, body []byte, at time.Time, claim, tenant string) events.APIGatewayV2HTTPRequest {
	headers, cookies := eventHeaders(r)
	sourceIP, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		sourceIP = r.RemoteAddr
	}
	host := r.Host
	prefix, _, _ := strings.Cut(host, ".")
	e := events.APIGatewayV2HTTPRequest{
		Version:               "2.0",
		RouteKey:              route.Key,
		RawPath:               r.URL.Path, // decoded, as the gateway gives it
		RawQueryString:        r.URL.RawQuery,
		Cookies:               cookies,
		Headers:               headers,
		QueryStringParameters: eventQuery(r.URL.RawQuery),
		PathParameters:        params,
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey:     route.Key,
			AccountID:    "000000000000",
			Stage:        stage,
			RequestID:    newRequestID(),
			APIID:        "local",
			DomainName:   host,
			DomainPrefix: prefix,
			Time:         at.UTC().Format("02/Jan/2006:15:04:05 -0700"),
			TimeEpoch:    at.UnixMilli(),
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
				Method:    r.Method,
				Path:      r.URL.Path,
				Protocol:  r.Proto,
				SourceIP:  sourceIP,
				UserAgent: r.UserAgent(),
			},
		},
	}
	if claim != "" && tenant != "" {
		e.RequestContext.Authorizer = identity(claim, tenant)
	}
	// Text that is no UTF-8 cannot stand in a JSON event. What the gateway makes
	// of it is not documented; in base64 the handler sees the bytes as sent.
	if len(body) > 0 && (!isText(r.Header.Get("Content-Type")) || !utf8.Valid(body)) {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	} else {
		e.Body = string(body)
	}
	return e
}

// identity is what an authorizer would say of a caller: the IAM authorizer for the
// names that only it has, a JWT authorizer for any other claim.
func identity(claim, value string) *events.APIGatewayV2HTTPRequestContextAuthorizerDescription {
	iam := &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{}
	switch claim {
	case "accountId":
		iam.AccountID = value
	case "userId":
		iam.UserID = value
	case "userArn":
		iam.UserARN = value
	default:
		return &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
			JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{claim: value}},
		}
	}
	return &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{IAM: iam}
}

// eventHeaders lower-cases names and joins duplicates by commas; cookies stand
// apart. The forwarding headers are those the gateway adds.
func eventHeaders(r *http.Request) (headers map[string]string, cookies []string) {
	headers = make(map[string]string, len(r.Header)+4)
	for name, values := range r.Header {
		if name == "Cookie" {
			for _, v := range values {
				for c := range strings.SplitSeq(v, ";") {
					cookies = append(cookies, strings.TrimSpace(c))
				}
			}
			continue
		}
		headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	headers["host"] = r.Host
	if r.ContentLength >= 0 {
		headers["content-length"] = strconv.FormatInt(r.ContentLength, 10)
	}
	if ip, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		if prior := headers["x-forwarded-for"]; prior != "" {
			ip = prior + ", " + ip
		}
		headers["x-forwarded-for"] = ip
	}
	headers["x-forwarded-proto"] = "http"
	return headers, cookies
}

// eventQuery decodes the parameters; duplicates are joined by commas. A pair
// that cannot be decoded is left out. Nil when there is none.
func eventQuery(raw string) map[string]string {
	values, _ := url.ParseQuery(raw) // what could be read is there beside the error
	if len(values) == 0 {
		return nil
	}
	q := make(map[string]string, len(values))
	for name, v := range values {
		q[name] = strings.Join(v, ",")
	}
	return q
}

// isText reports whether the gateway passes a body of this content type as text:
// text/*, JSON, XML and JavaScript. Anything else, and a missing type, is base64
// (https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html).
func isText(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(strings.ToLower(contentType), ";")
		media = strings.TrimSpace(media)
	}
	switch media {
	case "application/json", "application/xml", "application/javascript":
		return true
	}
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml")
}

// newRequestID returns an id of the gateway's look: 16 characters.
func newRequestID() string { return rand.Text()[:15] + "=" }
