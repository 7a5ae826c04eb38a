/* Licences of the libraries in this file: NOTICE.txt */
import{i as a,j as b,k as c}from"./chunk-AVVGNSC6.js";import"./chunk-HZ7KSQTL.js";import"./chunk-UARFWQWL.js";import"./chunk-PJLAHBY7.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
