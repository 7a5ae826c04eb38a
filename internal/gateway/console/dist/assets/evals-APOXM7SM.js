/* Licences of the libraries in this file: NOTICE.txt */
import{l as a,m as b,n as c,o as d}from"./chunk-ZSASF6RS.js";import"./chunk-3MJ4CFTN.js";import"./chunk-GXWSIOA4.js";import"./chunk-3GWUOFJB.js";import"./chunk-OOJM4CTU.js";export{c as Measure,b as NoResults,d as default,a as outcome};
