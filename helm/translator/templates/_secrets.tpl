{{/*
The settings that hold a secret in plain text, one path per line. Both charts have this file, with the same content.
Arguments: path, name (the last part of the path), value.

A setting is secret if its name says so, or if its value is a URL with a password, a token or a signature. A variable is
allowed instead: ${NAME}. Headers, credentials and JAAS texts can have other words before it: Bearer ${TOKEN},
id:${SECRET}.
*/}}
{{- define "cdc.plainSecrets" -}}
{{- $path := .path -}}
{{- if kindIs "map" .value -}}
{{- range $name, $value := .value -}}
{{- include "cdc.plainSecrets" (dict "path" (printf "%s.%s" $path $name) "name" $name "value" $value) -}}
{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- range $value := .value -}}
{{- include "cdc.plainSecrets" (dict "path" $path "name" "" "value" $value) -}}
{{- end -}}
{{- else if not (or (kindIs "invalid" .value) (kindIs "bool" .value)) -}}
{{- $text := toString .value -}}
{{- $rest := regexReplaceAll "\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}" $text "" -}}
{{- $header := regexMatch "(?i)(^|[.])headers?[.]" $path -}}
{{- $worded := or $header (regexMatch "(?i)credential|authorization|jaas" .name) -}}
{{- $secret := or $header (eq $path "config.masks.key") (regexMatch "(?i)passw|secret|token|credential|authorization|jaas|signature|(access|account|api|private|shared|sas)[._-]?key|key[.]pem|keystore[.]key$" .name) -}}
{{- if regexMatch "(?i)(ur[il]|file|path|location|provider|class|type|mechanism|enabled|interval|duration|name|-ms|seconds|access-delegation)$|[.]secrets[.]|secretKeyRef" .name -}}
{{- $secret = false -}}
{{- end -}}
{{- $literal := $rest -}}
{{- if regexMatch "(?i)jaas" .name -}}
{{- $literal = regexFind "(?i)(password|secret|token)\\s*=\\s*[\"']?[^\"'\\s;]+" $rest | default (ternary "" $rest (ne $rest $text)) -}}
{{- else if $worded -}}
{{- $literal = ternary "" $rest (regexMatch "\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}$" $text) -}}
{{- end -}}
{{- if or (and $secret $literal) (regexMatch "://[^/@:\\s]*:[^/@\\s]+@|(?i)[?&;](passw[a-z]*|secret|token|sig|signature|access_?key)=[^&;\\s]" $rest) -}}
{{- printf "%s\n" $path -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Reject secrets in plain text, in the configuration and in the environment. */}}
{{- define "cdc.noPlainSecrets" -}}
{{- range include "cdc.plainSecrets" (dict "path" "config" "name" "" "value" .Values.config) | trim | splitList "\n" | compact -}}
{{- fail (printf "%s holds a secret in plain text, which must not be in a ConfigMap. Write ${NAME}, and add the Secret to secretEnv." .) -}}
{{- end -}}
{{- range .Values.env -}}
{{- if include "cdc.plainSecrets" (dict "path" (printf "env.%s" .name) "name" .name "value" .value) -}}
{{- fail (printf "env.%s holds a secret in plain text. Add the Secret to secretEnv instead." .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
