package manifests

import (
	"encoding/json"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// writeError answers with the status of err, which is an API server's.
func writeError(w http.ResponseWriter, err error) {
	status := responsewriters.ErrorToAPIStatus(err)
	writeJSON(w, int(status.Code), status)
}

// writeJSON answers with a value that has a JSON form. A client that is gone
// needs no answer, so what cannot be written is dropped.
func writeJSON(w http.ResponseWriter, code int, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		code = http.StatusInternalServerError
		raw = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"reason":"InternalError"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(raw, '\n'))
}

func errNotFound() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource",
	}}
}

func errMethod(method string) error {
	message := method + " is not supported on the requested resource"
	if method != http.MethodGet {
		message += "; the objects of files are read-only"
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: message,
	}}
}
